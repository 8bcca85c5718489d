# frozen_string_literal: true

# Heddle.run on a thread whose scheduler runs already.
[{ preempt: :none }, { preempt: :all, tick: 0.0001 }].each do |options|
  RSpec.describe "Heddle.run within Heddle.run, with preempt: :#{options[:preempt]}" do
    let(:events) { [] }

    define_method(:run) { |&block| virtually(**options, &block) }

    # A fiber's work that lasts until the fiber is stopped.
    def endless(started, name)
      started << name
      sleep
    ensure
      Heddle.snooze
      events << name
    end

    # Starts one fiber of each kind, and returns when both wait.
    def start_both
      started = []
      Heddle.spin(background: true) { endless(started, :spun) }
      Fiber.schedule { endless(started, :scheduled) }
      pass_until { started.size == 2 }
    end

    # Starts a fiber that waits in a scope, beside one fiber of each kind, and returns it when all three wait.
    def spin_scope
      waiting = false
      fiber = Heddle.spin do
        Heddle.run do
          start_both
          waiting = true
          sleep
        end
      end
      pass_until { waiting && Heddle.state(fiber) == :waiting }
      fiber
    end

    it "runs the block in the calling fiber and returns its value" do
      values = run { [Fiber.current, Heddle.run { sleep(1) && Fiber.current }] }

      expect(values.uniq.size).to eq(1)
    end

    it "keeps the outer scheduler" do
      kept = run do
        before = Fiber.scheduler
        [Heddle.run { Fiber.scheduler }, Fiber.scheduler].all?(before)
      end

      expect(kept).to be(true)
    end

    it "waits for the fibers that were spun in it, and then stops those in the background" do
      run do
        Heddle.run do
          started = []
          Heddle.spin(background: true) { endless(started, :background) }
          Heddle.spin { sleep(1) && (events << :spun) }
          pass_until { started.any? }
        end
        events << :left
      end

      expect(events).to eq(%i[spun background left])
    end

    it "waits for the fibers of Fiber.schedule that were started in it, at any depth" do
      run do
        Heddle.run do
          Fiber.schedule do
            sleep(1)
            Fiber.schedule { sleep(1) && (events << :innermost) }
          end
          Heddle.await(Heddle.spin { Fiber.schedule { sleep(1) && (events << :of_spun) } })
        end
        events << :left
      end

      expect(events).to contain_exactly(:innermost, :of_spun, :left).and end_with(:left)
    end

    it "doesn't wait for fibers that were started outside" do
      gate = Queue.new
      run do
        spun = Heddle.spin { gate.pop && (events << :spun) }
        Fiber.schedule { gate.pop && (events << :scheduled) }
        Heddle.run { sleep(1) }
        events << :left
        2.times { gate.push(:open) }
        Heddle.await(spun)
      end

      expect(events).to contain_exactly(:left, :spun, :scheduled).and start_with(:left)
    end

    it "raises the error of a fiber that was spun in it, which the caller may rescue" do
      message = run do
        Heddle.run { Heddle.spin { raise KeyError, "mine" } && sleep }
      rescue KeyError => e
        e.message
      end

      expect(message).to eq("mine")
    end

    it "raises one of two errors, and drops the other one" do
      messages = run do
        begin
          Heddle.run { Array.new(2) { |i| Heddle.spin { raise KeyError, "mine #{i}" } } && sleep }
        rescue KeyError => e
          events << e.message
        end
        sleep(1)
        events
      end

      expect(messages).to match([/\Amine [01]\z/])
    end

    it "raises the error of an ensure that runs at its end" do
      message = run do
        Heddle.run do
          begun = false
          Heddle.spin(background: true) do
            begun = true
            sleep
          ensure
            raise KeyError, "in ensure" if begun
          end
          pass_until { begun }
        end
      rescue KeyError => e
        e.message
      end

      expect(message).to eq("in ensure")
    end

    it "raises an error of a fiber that was spun outside only once" do
      run do
        failing = Heddle.spin { sleep(1) && raise(KeyError) }
        begin
          Heddle.run { Heddle.await(failing) }
        rescue KeyError
          events << :raised
        end
        sleep(1)
      end

      expect(events).to eq([:raised])
    end

    it "waits for its fibers before it raises the block's error" do
      run do
        Heddle.run do
          Fiber.schedule { sleep(1) && (events << :scheduled) }
          raise KeyError
        end
      rescue KeyError
        events << :raised
      end

      expect(events).to eq(%i[scheduled raised])
    end

    it "tells its fibers to end when a time limit elapses in the block" do
      run do
        Heddle.move_on_after(60) do |deadline|
          Heddle.run do
            start_both
            deadline.reset(1) && sleep
          end
        end
        events << :moved_on
      end

      expect(events).to contain_exactly(:spun, :scheduled, :moved_on).and end_with(:moved_on)
    end

    it "tells its fibers to end when a time limit elapses after the block" do
      run do
        Heddle.move_on_after(60) do |deadline|
          Heddle.run { start_both || deadline.reset(1) }
        end
        events << :moved_on
      end

      expect(events).to contain_exactly(:spun, :scheduled, :moved_on).and end_with(:moved_on)
    end

    it "tells its fibers to end when the calling fiber is terminated" do
      run do
        fiber = spin_scope
        Heddle.stop(fiber)
        Heddle.await(fiber)
        events << :ended
      end

      expect(events).to contain_exactly(:spun, :scheduled, :ended).and end_with(:ended)
    end

    it "tells its fibers to end when the calling fiber is killed" do
      run do
        fiber = spin_scope
        fiber.kill
        Heddle.await(fiber)
      end

      expect(events).to contain_exactly(:spun, :scheduled)
    end

    it "can be left by break and throw" do
      values = run do
        [Heddle.run { break :broken }, catch(:ball) { Heddle.run { throw(:ball, :thrown) } }]
      end

      expect(values).to eq(%i[broken thrown])
    end

    it "can be nested a hundred deep" do
      dive = ->(depth) { depth.zero? ? :bottom : Heddle.run { Fiber.schedule { sleep(0) } && dive.call(depth - 1) } }

      expect(run { dive.call(100) }).to eq(:bottom)
    end

    it "leaves nothing behind of a thousand calls" do
      before, after = run do
        before = state_counts
        1000.times { Heddle.run { Fiber.schedule { sleep(0) } && Heddle.spin { nil } } }
        [before, state_counts]
      end

      expect(after).to eq(before)
    end

    it "works in a thread's root fiber" do
      with_scheduler(**options) do
        Heddle.run { Fiber.schedule { sleep(a_moment) && (events << :scheduled) } }
        events << :left
      end

      expect(events).to eq(%i[scheduled left])
    end

    it "works in an Enumerator" do
      spin = -> { Heddle.await(Heddle.spin { sleep(60) && :spun }) }
      value = run { Enumerator.new { |yielder| yielder << Heddle.run(&spin) }.next }

      expect(value).to eq(:spun)
    end

    it "works in a thread that the block starts" do
      value = run { Heddle.run { Thread.new { Heddle.run { Heddle.run { sleep(a_moment) && :inner } } }.value } }

      expect(value).to eq(:inner)
    end

    it "waits in a forked child for none of its parent's fibers" do
      status = Heddle.run(**options) do
        pid = Heddle.run do
          Heddle.spin(background: true) { sleep }
          Fiber.schedule { sleep(a_moment) }
          fork
        end
        # The child comes out of the scope, too.
        exit!(Heddle.run { sleep(a_moment) && 7 }) unless pid
        Process.wait2(pid).last
      end

      expect(status.exitstatus).to eq(7)
    end
  end
end

RSpec.describe "Heddle.run where a scheduler runs already" do
  it "refuses options, which it can't apply" do
    expect { Heddle.run { Heddle.run(preempt: :all, tick: nil) { nil } } }
      .to raise_error(ArgumentError, /keeps its options, so preempt: cannot be set/)
  end

  it "names the class of another library's scheduler, and the way out" do
    stub_const("OtherScheduler", Class.new do
      %i[block unblock kernel_sleep io_wait fiber_interrupt].each { |hook| define_method(hook) { |*| nil } }
    end)
    attempt = Thread.new do
      Thread.current.report_on_exception = false
      Fiber.set_scheduler(OtherScheduler.new)
      Heddle.run { nil }
    end

    expect { attempt.value }.to raise_error(RuntimeError, /\AHeddle\.run .* a OtherScheduler: .*Thread\.new/)
  end

  it "survives compaction", gc: :compact do
    value = Heddle.run do
      Heddle.run do
        Fiber.schedule { sleep(a_moment) }
        GC.compact
        :value
      end
    end

    expect(value).to eq(:value)
  end
end
