# frozen_string_literal: true

RSpec.describe "A thread that has just written to an IO" do
  # Each round is a race between the write and the close. Without the remedy, one in about 300 rounds hangs on Ruby 3.3
  # and 3.4: they handle a thread's interrupts at the end of the hook `unblock`, while they hold a lock.
  it "does not keep another thread's fiber from closing the IO" do
    output, errors, = run_ruby(<<~'RUBY')
      require "heddle"
      1500.times do |round|
        reader, writer = IO.pipe
        ready = Queue.new
        closer = Thread.new do
          Fiber.set_scheduler(Heddle::Scheduler.new)
          Fiber.schedule do
            ready << true
            reader.read(1)
            [reader, writer].each(&:close)
          end
        end
        ready.pop
        begin
          writer << "x"
        rescue IOError
        end
        abort "round #{round}: the fiber does not return from IO#close" unless closer.join(5)
      end
      puts "closed"
    RUBY

    expect([output, errors]).to eq ["closed\n", ""]
  end
end
