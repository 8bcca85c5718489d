# frozen_string_literal: true

RSpec.describe "An error of the kernel in a poll", if: File.exist?("/proc/self/fd") do
  it "lets what runs while it is made poll, as a signal's handler does" do
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      $stdout.sync = true
      Fiber.set_scheduler(scheduler = Heddle::Scheduler.new)
      reader, writer = IO.pipe
      Fiber.schedule { reader.wait_readable }
      polled = Dir.children("/proc/self/fd").map(&:to_i).select do |number|
        File.readlink("/proc/self/fd/\#{number}").match?(/eventpoll|io_uring/)
      rescue Errno::ENOENT
        false
      end
      # Ruby may have one of its own, which is older.
      IO.for_fd(polled.max).close
      trace = TracePoint.new(:c_call) do |event|
        next unless event.method_id == :initialize && event.self.is_a?(SystemCallError)

        trace.disable
        begin
          scheduler.kernel_sleep(0.001)
        rescue Errno::EBADF
          puts "polled"
        end
      end
      trace.enable(target_thread: Thread.current)
      begin
        scheduler.run
      rescue Errno::EBADF
        puts "raised"
      end
      exit!
    RUBY
    expect([output, errors]).to eq ["polled\nraised\n", ""]
  end
end
