# frozen_string_literal: true

RSpec.describe "A termination during the fiber's cleanup" do
  let(:grace) { 0.1 }

  it "doesn't interrupt an ensure that waits" do
    events = []
    run_and_terminate(virtual: true) do
      sleep
    ensure
      sleep(1)
      events << :first
      sleep(1)
      events << :second
    end

    expect(events).to eq(%i[first second])
  end

  it "doesn't interrupt an ensure that rescues another error, and waits in the rescue" do
    events = []
    run_and_terminate(virtual: true) do
      sleep
    ensure
      begin
        raise KeyError
      rescue KeyError
        sleep(1)
        events << :inner
      end
      sleep(1)
      events << :outer
    end

    expect(events).to eq(%i[inner outer])
  end

  # Ruby sets the cause of an error once. So nothing tells in the rescue that the fiber unwinds.
  it "doesn't interrupt an ensure that has waited while it rescued an error with an earlier cause" do
    error = error_with_cause
    events = []
    run_and_terminate(virtual: true, grace: 60) do
      sleep
    ensure
      begin
        raise error
      rescue KeyError
        sleep(0.0001)
        events << :inner
      end
      sleep(1)
      events << :outer
    end

    expect(events).to eq(%i[inner outer])
  end

  def error_with_cause
    raise IOError
  rescue IOError
    begin
      raise KeyError
    rescue KeyError => e
      e
    end
  end

  # Ruby hides the error from ticks there. A fiber that is always runnable, and never preempted, counts how often the
  # unwinding one is preempted: twice are enough for a wrong end of the cleanup, and fewer than make the error count as
  # swallowed, however late the ticks are.
  it "doesn't interrupt a method that a C function calls as it unwinds, while ticks come" do
    preemptions = 0
    closed = false
    file = Class.new(File) do
      define_method(:close) do
        last = preemptions + 2
        nil until preemptions >= last
        closed = true
        super()
      end
    end
    Heddle.run(preempt: :all, grace: 60) do
      computing = false
      fiber = Heddle.spin { file.open(File::NULL) { loop { computing = true } } }
      Heddle.spin(background: true) do
        Heddle.without_preemption do
          loop do
            sleep(0)
            preemptions = Fiber.scheduler.stats[:run_queue][:preemptions_count]
          end
        end
      end
      sleep(0) until computing
      Heddle.stop(fiber)
      Heddle.await(fiber)
    end

    expect(closed).to be(true)
  end

  it "doesn't interrupt a rescue of Exception that waits and then raises it again" do
    events = []
    run_and_terminate(virtual: true) do
      sleep
    rescue Exception # rubocop:disable Lint/RescueException
      sleep(1)
      events << :rescued
      raise
    end

    expect(events).to eq([:rescued])
  end

  it "doesn't interrupt the rescue of an error that was raised in its place" do
    events = []
    run_and_terminate(virtual: true) do
      begin
        sleep
      rescue Exception # rubocop:disable Lint/RescueException
        raise "instead"
      end
    rescue RuntimeError => e
      sleep(1)
      events << e.message
    end

    expect(events).to eq(["instead"])
  end

  it "lets ConditionVariable#wait lock its Mutex again, also within the rescue of another error" do
    owned = nil
    mutex = Mutex.new
    virtually do
      waiter = Heddle.spin do
        raise IOError
      rescue IOError
        mutex.synchronize do
          ConditionVariable.new.wait(mutex)
        ensure
          owned = mutex.owned?
        end
      end
      Heddle.snooze
      mutex.synchronize do
        Heddle.stop(waiter)
        3.times { sleep(1) }
      end
      Heddle.await(waiter)
    end

    expect(owned).to be(true)
  end

  it "is not raised a second time by a second Heddle.stop" do
    ended = false
    virtually do
      fiber = Heddle.spin do
        sleep
      ensure
        sleep(4)
        ended = true
      end
      Heddle.snooze
      3.times do
        Heddle.stop(fiber)
        sleep(1)
      end
      Heddle.await(fiber)
    end

    expect(ended).to be(true)
  end

  it "doesn't interrupt an ensure whose generator waits, when the thread is killed" do
    value = nil
    thread = Thread.new do
      Heddle.run do
        sleep
      ensure
        value = Enumerator.new { |yielder| yielder << sleep(a_moment) }.next && :generated
      end
    end
    until_asleep(thread)
    thread.kill.join

    expect(value).to eq(:generated)
  end

  it "may take longer than the grace in Heddle.shield" do
    ended = false
    text = captured_stderr do
      run_and_terminate(grace: 5, virtual: true) do
        sleep
      ensure
        Heddle.shield { sleep(60) }
        ended = true
      end
    end

    expect([ended, text]).to eq([true, ""])
  end

  it "may take any time with an infinite grace" do
    ended = false
    text = captured_stderr do
      run_and_terminate(grace: Float::INFINITY, virtual: true) do
        sleep
      ensure
        sleep(3600)
        ended = true
      end
    end

    expect([ended, text]).to eq([true, ""])
  end

  it "may take longer for a parent whose children have their own grace" do
    text = captured_stderr do
      virtually(grace: 5) do
        parent = Heddle.spin do
          Heddle.spin { swallow { sleep } }
          sleep
        end
        2.times { Heddle.snooze }
        Heddle.stop(parent)
        Heddle.await(parent)
      end
    end

    expect(text.lines.size).to eq(1)
  end

  it "leaves nothing behind in the scheduler" do
    counts = nil
    virtually do
      counts = [state_counts]
      fiber = Heddle.spin do
        sleep
      rescue Exception # rubocop:disable Lint/RescueException
        sleep(1)
      end
      Heddle.snooze
      Heddle.stop(fiber)
      Heddle.await(fiber)
      counts << state_counts
    end

    expect(counts[1]).to eq(counts[0])
  end
end
