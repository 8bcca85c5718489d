# frozen_string_literal: true

# Known traps of the hook interface. The tag `trap:` is the number of the trap. These have no example here:
#
#   trap | why
#   -----+-----------------------------------------------------------------------------------------------------------
#     43 | each fiber has masks of its own: spec/integration/preemption/interrupt_masks_spec.rb
#     45 | Ruby's own: Thread#wakeup asks no scheduler
RSpec.describe "A scheduler under signals and interrupts" do
  around do |example|
    previous = trap("USR2", "DEFAULT")
    example.run
  ensure
    trap("USR2", previous)
  end

  it "handles a signal while it is asleep in the kernel", trap: 41 do
    main = Thread.current
    handled = Heddle.run do
      queue = Queue.new
      trap("USR2") { queue.push(:handled) }
      sender = Thread.new do
        until_asleep(main)
        Process.kill(:USR2, Process.pid)
      end
      queue.pop.tap { sender.join }
    end
    expect(handled).to eq :handled
  end

  it "handles a signal while fibers sleep, and none of them wakes early", trap: 41 do
    main = Thread.current
    took = nil
    handled = 0
    trap("USR2") { handled += 1 }
    sender = Thread.new do
      until_asleep(main)
      5.times do |number|
        Process.kill(:USR2, Process.pid)
        Thread.pass until handled > number
      end
    end
    Heddle.run { took = seconds { sleep(0.05) } }
    sender.join
    expect([handled, took]).to match [5, be >= 0.05]
  end

  it "lets a handler sleep", trap: 42 do
    order = []
    Heddle.run do
      queue = Queue.new
      trap("USR2") do
        order << :begun
        sleep(0.001)
        order << :slept
        queue.push(true)
      end
      Process.kill(:USR2, Process.pid)
      queue.pop
    end
    expect(order).to eq %i[begun slept]
  end

  it "doesn't mask interrupts while fibers run: the root fiber gets them", trap: 44 do
    stop = Class.new(StandardError)
    ready = Queue.new
    thread = Thread.new do
      Heddle.run do
        ready.push(true)
        loop { nil }
      rescue stop
        :interrupted_a_fiber
      end
    rescue stop
      :interrupted
    end
    ready.pop
    thread.raise(stop)
    expect(thread.value).to eq :interrupted
  end

  it "lets Ctrl-C end a program with a CPU-bound fiber", trap: 44 do
    _output, _errors, status = run_ruby(<<~RUBY)
      require "heddle"
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Thread.new { Process.kill(:INT, Process.pid) }
      Fiber.schedule { loop {} }
    RUBY
    expect(status.termsig).to eq Signal.list.fetch("INT")
  end

  it "reports no pending interrupt to a fiber", trap: 44 do
    trap("USR2") { :handled }
    pending = Heddle.run do
      Process.kill(:USR2, Process.pid)
      sleep(0.001)
      Thread.pending_interrupt?
    end
    expect(pending).to be false
  end
end
