# frozen_string_literal: true

RSpec.describe "Fibers that are spun" do
  describe "Heddle.spin" do
    it "queues the new fiber instead of starting it at once" do
      order = []
      Heddle.run do
        fiber = Heddle.spin { order << :child }
        order << :parent
        Heddle.await(fiber)
      end

      expect(order).to eq(%i[parent child])
    end

    it "runs fibers in the order in which they were spun" do
      order = []
      Heddle.run { Heddle.await_all(*Array.new(5) { |i| Heddle.spin { order << i } }) }

      expect(order).to eq([0, 1, 2, 3, 4])
    end

    it "gives the block its arguments" do
      expect(Heddle.run { Heddle.await_all(Heddle.spin(1, 2) { |a, b| [b, a] }) }).to eq([[2, 1]])
    end

    it "makes non-blocking fibers, with a copy of their parent's storage" do
      seen = Heddle.run do
        Fiber[:colour] = :blue
        Heddle.await(Heddle.spin { [Fiber.current.blocking?, Fiber[:colour]] })
      end

      expect(seen).to eq([false, :blue])
    end

    it "refuses a thread whose scheduler is not Heddle's" do
      other = Class.new do
        %i[block unblock kernel_sleep io_wait fiber_interrupt].each { |hook| define_method(hook) { |*| nil } }
      end
      attempt = Thread.new do
        Thread.current.report_on_exception = false
        Fiber.set_scheduler(other.new)
        Heddle.spin { :never }
      end

      expect { attempt.value }.to raise_error(RuntimeError, /its own/)
    end

    it "works in a generator, and makes the fiber a child of the generator's caller" do
      events = []
      Heddle.run do
        spinner = Heddle.spin do
          Enumerator.new do |yielder|
            Heddle.spin(background: true) do
              sleep
            ensure
              events << :ended
            end
            yielder << :spun
          end.next
          Heddle.snooze
        end
        Heddle.await(spinner)
        events << :awaited
      end

      expect(events).to eq(%i[ended awaited])
    end

    it "works in a fiber of Fiber.schedule, which becomes the parent" do
      events = []
      Heddle.run do
        Fiber.schedule do
          Heddle.spin(background: true) do
            sleep
          ensure
            events << :stopped
          end
          Heddle.spin { sleep(a_moment) && (events << :awaited) }
          Heddle.snooze
          events << :parent
        end
      end

      expect(events).to eq(%i[parent awaited stopped])
    end

    it "leaves nothing behind of ten thousand fibers" do
      before, after = in_child do
        Heddle.run do
          before = state_counts
          Heddle.await_all(*Array.new(10_000) { Heddle.spin { Heddle.snooze } })
          [before, state_counts]
        end
      end

      expect(after).to eq(before)
    end

    it "survives compaction", gc: :compact do
      value = Heddle.run do
        queue = Queue.new
        fiber = Heddle.spin { queue.pop }
        Heddle.snooze
        queue << "a value"
        GC.compact
        Heddle.await(fiber)
      end

      expect(value).to eq("a value")
    end
  end

  describe "Heddle.await" do
    it "returns the values in the order of its arguments" do
      values = virtually do
        Heddle.await_all(*[3, 1, 2].map { |time| Heddle.spin { sleep(time) && time } })
      end

      expect(values).to eq([3, 1, 2])
    end

    it "does not wake the calling fiber before the last of the fibers ends" do
      states = Heddle.run do
        main = Fiber.current
        first = Heddle.spin { Heddle.snooze until Heddle.state(main) == :waiting }
        second = Heddle.spin { first.await || Heddle.state(main) }
        Heddle.snooze until second.state == :waiting
        Heddle.await_all(first, second)
      end

      expect(states).to eq([nil, :waiting])
    end

    it "returns the value of a fiber that has ended" do
      values = Heddle.run do
        fiber = Heddle.spin { :done }
        Heddle.snooze while fiber.alive?
        Heddle.await_all(fiber, fiber)
      end

      expect(values).to eq(%i[done done])
    end

    it "returns no values for no fibers" do
      expect(Heddle.run { Heddle.await_all }).to eq([])
    end

    it "returns nil for a fiber that was terminated" do
      value = Heddle.run do
        fiber = Heddle.spin { sleep }
        Heddle.stop(fiber)
        Heddle.await(fiber)
      end

      expect(value).to be_nil
    end

    it "returns nil for a fiber that was killed, before or after it began" do
      values = Heddle.run do
        begun = Heddle.spin { sleep }
        Heddle.snooze
        unborn = Heddle.spin { :never }
        [unborn, begun].each(&:kill)
        Heddle.await_all(begun, unborn)
      end

      expect(values).to eq([nil, nil])
    end

    it "returns nil for a fiber that was killed before it began, if something is raised at the end of the kill" do
      value = raised = :none
      Heddle.run do
        unborn = Heddle.spin { :never }
        trace = TracePoint.new(:c_return) do |event|
          next unless event.method_id == :raising

          trace.disable
          raise "at the end"
        end
        begin
          trace.enable(target_thread: Thread.current)
          unborn.kill
        rescue RuntimeError => e
          raised = e.message
        end
        waiter = Fiber.schedule { value = Heddle.await(unborn) }
        sleep(0)
        Heddle.stop(waiter)
      end

      expect([value, raised]).to eq([nil, "at the end"])
    end

    it "raises the first error after the other fibers have ended" do
      events = []
      attempt = lambda do
        virtually do
          slow = Heddle.spin do
            sleep
          ensure
            sleep(1)
            events << :ensured
          end
          failing = Heddle.spin { raise KeyError, "first" }
          Heddle.await_all(slow, failing)
        rescue KeyError
          events << :raised
          raise
        end
      end

      expect(&attempt).to raise_error(KeyError, "first")
      expect(events).to eq(%i[ensured raised])
    end

    it "raises the error of a fiber that had failed before, and only once" do
      errors = []
      virtually do
        fiber = Heddle.spin { raise KeyError }
        Fiber.scheduler.kernel_sleep(0) while fiber.alive?
        Heddle.await(fiber)
      rescue KeyError => e
        errors << e
        sleep(1)
      end

      expect(errors.size).to eq(1)
    end

    it "keeps the backtrace of the error" do
      place = Heddle.run do
        Heddle.await(Heddle.spin { raise "here" })
      rescue RuntimeError => e
        e.backtrace.first
      end

      expect(place).to match(/spin_spec\.rb:#{__LINE__ - 5}/)
    end

    it "doesn't stop the awaited fiber when it is cancelled itself" do
      value = virtually do
        fiber = Heddle.spin { sleep(20) && :finished }
        Heddle.move_on_after(1) { Heddle.await(fiber) }
        Heddle.await(fiber)
      end

      expect(value).to eq(:finished)
    end

    it "returns the value of a fiber of Fiber.schedule that is still running" do
      expect(virtually { Heddle.await_all(Fiber.schedule { sleep(1) && :scheduled }) }).to eq([:scheduled])
    end

    it "may be called by several fibers for the same fiber" do
      values = virtually do
        shared = Heddle.spin { sleep(1) && :shared }
        Heddle.await_all(*Array.new(3) { Heddle.spin { Heddle.await(shared) } })
      end

      expect(values).to eq(%i[shared shared shared])
    end

    it "works in a thread's root fiber" do
      value = with_scheduler { Heddle.await_all(Heddle.spin { sleep(a_moment) && :value }) }

      expect(value).to eq([:value])
    end
  end

  describe "Heddle.await, for a fiber of Fiber.schedule" do
    it "raises the fiber's error, which is reported as well" do
      output, errors, = run_ruby(<<~RUBY)
        require "heddle"
        Heddle.run do
          Heddle.await(Fiber.schedule { sleep a_moment; raise KeyError, "scheduled" })
        rescue KeyError => e
          puts e.message
        end
      RUBY

      expect([output, errors[/scheduled \(KeyError\)/]]).to eq(["scheduled\n", "scheduled (KeyError)"])
    end

    it "returns nil if the fiber was terminated or killed" do
      values = Heddle.run do
        told = Fiber.schedule { sleep }
        killed = Fiber.schedule { sleep }
        waiter = Heddle.spin { Heddle.await_all(told, killed) }
        Heddle.snooze
        Heddle.stop(told)
        killed.kill
        Heddle.await(waiter)
      end

      expect(values).to eq([nil, nil])
    end
  end

  it "refuses unknown keywords, and passes a Hash to the block" do
    expect { Heddle.run { Heddle.spin(two: 2) { nil } } }.to raise_error(ArgumentError, /unknown keyword: :two/)
    expect(Heddle.run { Heddle.spin({ two: 2 }) { |hash| hash }.await }).to eq({ two: 2 })
  end
end
