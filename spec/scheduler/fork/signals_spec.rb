# frozen_string_literal: true

RSpec.describe "A signal's handler in the first hook of a forked child" do
  it "starts a fiber whose wait ends" do
    skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      $stdout.sync = true
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.scheduler.run
      Process.wait(
        fork do
          reader, writer = IO.pipe
          ended = Thread::Queue.new
          trap(:USR1) do
            Fiber.schedule do
              reader.wait_readable
              ended << :ended
            end
          end
          # The child's scheduler sets up a backend of its own.
          trace = TracePoint.new(:return) do |event|
            next unless event.method_id == :install && event.path.end_with?("heddle/patches.rb")

            trace.disable
            Process.kill(:USR1, Process.pid)
          end
          trace.enable
          Fiber.schedule do
            writer << "x"
            p ended.pop(timeout: 20)
            exit!
          end
          Fiber.scheduler.run
        end
      )
    RUBY
    expect([output, errors]).to eq [":ended\n", ""]
  end
end
