# frozen_string_literal: true

# Known traps of the hook interface. The tag `trap:` is the number of the trap.
RSpec.describe "A scheduler at the end of its thread or process" do
  it "returns a thread's value after its fibers have ended", trap: 25 do
    ended = []
    thread = scheduled_thread do
      Fiber.schedule do
        sleep(a_moment)
        ended << :fiber
      end
      :value
    end
    expect([thread.value, ended]).to eq [:value, [:fiber]]
  end

  it "raises a thread's own error after its fibers have ended, and not theirs", trap: 25 do
    expect do
      thread = scheduled_thread do
        Thread.current.report_on_exception = true
        Fiber.schedule do
          sleep(a_moment)
          raise "of a fiber"
        end
        raise "of the thread"
      end
      expect { thread.join }.to raise_error("of the thread")
    end.to output(/of a fiber/).to_stderr
  end

  it "cancels the fibers on Thread#kill instead of waiting for them", trap: 26 do
    ensured = Queue.new
    ready = Queue.new
    thread = scheduled_thread do
      Fiber.schedule do
        sleep(60)
      ensure
        ensured.push(:ensured)
      end
      ready.push(true)
      sleep
    end
    ready.pop
    until_asleep(thread)
    thread.kill.join
    expect([thread.status, ensured.size]).to eq [false, 1]
  end

  # A thread that waits for its fibers. Each pushes its number in its ensure.
  def thread_with_five_fibers(ensured)
    thread = scheduled_thread do
      5.times do |number|
        Fiber.schedule do
          sleep(60)
        ensure
          sleep(a_moment)
          ensured.push(number)
        end
      end
    end
    until_asleep(thread)
    thread
  end

  it "runs every ensure when Thread#kill comes while it waits for its fibers", trap: 27 do
    ensured = Queue.new
    thread = thread_with_five_fibers(ensured)
    thread.kill.join
    expect(Array.new(ensured.size) { ensured.pop }).to contain_exactly(0, 1, 2, 3, 4)
  end

  it "runs every ensure, and ends, when Thread#raise comes while it waits for its fibers", trap: 27 do
    ensured = Queue.new
    thread = thread_with_five_fibers(ensured)
    thread.raise(ArgumentError, "interrupted")
    expect { thread.join }.to raise_error(ArgumentError, "interrupted")
    expect(Array.new(ensured.size) { ensured.pop }).to contain_exactly(0, 1, 2, 3, 4)
  end

  it "ends the thread when a fiber kills it, and runs the other fibers' ensure", trap: 28 do
    events = Queue.new
    thread = scheduled_thread do
      Fiber.schedule do
        sleep(60)
      ensure
        events.push(:sibling)
      end
      Fiber.schedule do
        sleep(a_moment)
        Thread.current.kill
        events.push(:not_killed)
      ensure
        events.push(:killer)
      end
    end
    thread.join
    expect(Array.new(events.size) { events.pop }).to contain_exactly(:killer, :sibling)
  end

  it "is closed before at_exit, where there is no scheduler", trap: 29 do
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      $stdout.sync = true
      at_exit { puts "at_exit: \#{Fiber.scheduler.inspect}" }
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule { sleep(a_moment); puts "fiber" }
    RUBY
    expect([output, errors, status.exitstatus]).to eq ["fiber\nat_exit: nil\n", "", 0]
  end

  it "ends a process without waiting for the fibers of other threads", trap: 29 do
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      require #{Settling::PATH.dump}
      $stdout.sync = true
      thread = Thread.new do
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { begin; sleep(60); ensure; puts "ensured"; end }
      end
      Settling.one(thread)
    RUBY
    expect([output, errors, status.exitstatus]).to eq ["ensured\n", "", 0]
  end

  it "lets the fibers of a scheduler end before the next one takes its place", trap: 30 do
    order = []
    with_scheduler do
      Fiber.schedule do
        sleep(a_moment)
        order << :first
      end
      Fiber.set_scheduler(Heddle::Scheduler.new)
      order << :next
      Fiber.schedule do
        sleep(a_moment)
        order << :second
      end
    end
    expect(order).to eq %i[first next second]
  end

  it "can be removed inside a scheduled fiber, which waits for all other fibers", trap: 30 do
    order = []
    with_scheduler do
      Fiber.schedule do
        sleep(a_moment)
        order << :other
      end
      Fiber.schedule do
        Fiber.set_scheduler(nil)
        order << :taken_away
      end
    end
    expect(order).to eq %i[other taken_away]
  end

  it "is closed once by its own close, and is then the scheduler of no thread", trap: 31 do
    events = []
    with_scheduler do |scheduler|
      Fiber.schedule do
        sleep(a_moment)
        events << :fiber
      end
      scheduler.close
      events << Fiber.scheduler
    end
    expect(events).to eq [:fiber, nil]
  end

  it "runs fibers that are scheduled while it is being closed", trap: 32 do
    events = []
    with_scheduler do
      Fiber.schedule do
        sleep(a_moment)
        events << :outer
        Fiber.schedule do
          sleep(a_moment)
          events << :inner
        end
      end
    end
    expect(events).to eq %i[outer inner]
  end

  it "runs fibers that an ensure schedules during cancellation", trap: 32 do
    events = Queue.new
    # A tick would end the second fiber, too, perhaps before its first line.
    thread = scheduled_thread(quantum: 60, tick: 60) do
      Fiber.schedule do
        sleep(60)
      ensure
        Fiber.schedule { events.push(:begun) }
      end
    end
    until_asleep(thread)
    thread.kill.join
    expect(Array.new(events.size) { events.pop }).to eq [:begun]
  end
end
