# frozen_string_literal: true

RSpec.describe "A mask of Thread.handle_interrupt in a forked child" do
  it "holds for the fiber that has set it, and not for the root" do
    skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      require #{Settling::PATH.dump}
      $stdout.sync = true
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.scheduler.run
      Process.wait(
        fork do
          root = Thread.current
          gate = Thread::Queue.new
          Fiber.schedule do
            Thread.handle_interrupt(RuntimeError => :never) { gate.pop }
            puts "unmasked"
          end
          Thread.new do
            Settling.one(root)
            root.raise("in the root")
            Settling.one(root)
            puts "held back"
            gate << :open
          end
          begin
            Fiber.scheduler.run
          rescue => e
            puts e.message
          end
          exit!
        end
      )
    RUBY
    expect([output, errors]).to eq ["in the root\n", ""]
  end
end
