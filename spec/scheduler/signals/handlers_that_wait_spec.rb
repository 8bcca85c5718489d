# frozen_string_literal: true

RSpec.describe "A signal's handler that waits, in a fiber that is about to wait itself" do
  # What the program prints when all of its fibers have ended or wait for ever.
  def printed_by(program)
    run_ruby(<<~RUBY).first
      require "heddle"
      trap(:USR1) { sleep(0) }
      #{program}
      Fiber.schedule { 10.times { sleep(0) } and exit! }
      Fiber.scheduler.run
    RUBY
  end

  it "leaves the signal of a condition variable to that fiber" do
    output = printed_by(<<~RUBY)
      $stdout.sync = true
      # Ruby calls `unblock` when it has put the fiber on the condition's list, and has unlocked the Mutex.
      class Interrupted < Heddle::Scheduler
        attr_writer :armed

        def unblock(*)
          super
          @armed, armed = false, @armed
          Process.kill(:USR1, Process.pid) if armed
        end
      end
      Fiber.set_scheduler(scheduler = Interrupted.new)
      mutex = Mutex.new
      condition = ConditionVariable.new
      Fiber.schedule do
        mutex.synchronize do
          sleep(0)
          scheduler.armed = true
          condition.wait(mutex)
          puts "woken"
        end
      end
      Fiber.schedule { mutex.synchronize { condition.signal } }
    RUBY
    expect(output).to eq "woken\n"
  end

  it "leaves a wake-up that comes between a look at a condition and `block` to that fiber" do
    output = printed_by(<<~RUBY)
      $stdout.sync = true
      Fiber.set_scheduler(Heddle::Scheduler.new)
      ready = false
      waiter = Fiber.schedule do
        until ready
          Process.kill(:USR1, Process.pid)
          Fiber.scheduler.block(:ready, nil)
        end
        puts "woken"
      end
      Fiber.schedule do
        ready = true
        Fiber.scheduler.unblock(:ready, waiter)
      end
    RUBY
    expect(output).to eq "woken\n"
  end
end
