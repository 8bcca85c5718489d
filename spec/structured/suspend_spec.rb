# frozen_string_literal: true

RSpec.describe "Manual scheduling" do
  describe "Heddle.suspend and Heddle.schedule" do
    it "pass the resume value on" do
      value = Heddle.run do
        fiber = Heddle.spin { Heddle.suspend }
        Heddle.snooze
        Heddle.schedule(fiber, :value)
        Heddle.await(fiber)
      end

      expect(value).to eq(:value)
    end

    it "pass nil on if there is no resume value" do
      value = Heddle.run do
        fiber = Heddle.spin { [Heddle.suspend] }
        Heddle.schedule(fiber)
        Heddle.await(fiber)
      end

      expect(value).to eq([nil])
    end

    it "keep values that come before the fiber suspends, in their order" do
      values = Heddle.run do
        fiber = Heddle.spin { Array.new(3) { Heddle.suspend } }
        3.times { |i| Heddle.schedule(fiber, i) }
        Heddle.await(fiber)
      end

      expect(values).to eq([0, 1, 2])
    end

    it "don't end another wait with a value, which the next suspend returns" do
      values = Heddle.run do
        queue = Queue.new
        fiber = Heddle.spin { [queue.pop, Heddle.suspend] }
        Heddle.snooze
        Heddle.schedule(fiber, :early)
        Heddle.snooze
        queue.push(:popped)
        Heddle.await(fiber)
      end

      expect(values).to eq(%i[popped early])
    end

    it "raise an exception in the fiber" do
      message = Heddle.run do
        fiber = Heddle.spin do
          Heddle.suspend
        rescue KeyError => e
          e.message
        end
        Heddle.snooze
        Heddle.schedule(fiber, KeyError.new("sent"))
        Heddle.await(fiber)
      end

      expect(message).to eq("sent")
    end

    it "raise an exception in a fiber that waits for something else" do
      message = Heddle.run do
        fiber = Heddle.spin do
          Queue.new.pop
        rescue KeyError => e
          e.message
        end
        Heddle.snooze
        Heddle.schedule(fiber, KeyError.new("sent"))
        Heddle.await(fiber)
      end

      expect(message).to eq("sent")
    end

    it "raise an exception in a fiber that hasn't begun, so its block never runs" do
      began = false
      attempt = lambda do
        Heddle.run do
          fiber = Heddle.spin { began = true }
          Heddle.schedule(fiber, KeyError.new("sent"))
          Heddle.await(fiber)
        end
      end

      expect(&attempt).to raise_error(KeyError, "sent")
      expect(began).to be(false)
    end

    it "don't switch to the fiber" do
      order = []
      Heddle.run do
        fiber = Heddle.spin { Heddle.suspend && (order << :fiber) }
        Heddle.snooze
        Heddle.schedule(fiber, true)
        order << :scheduler
        Heddle.await(fiber)
      end

      expect(order).to eq(%i[scheduler fiber])
    end

    it "work for a thread's root fiber" do
      value = Thread.new do
        root = Fiber.current
        Heddle.spin { Heddle.schedule(root, :to_the_root) }
        Heddle.suspend
      end.value

      expect(value).to eq(:to_the_root)
    end

    it "keep a value that a root fiber is sent while it waits for something else" do
      values = Thread.new do
        root = Fiber.current
        child = Heddle.spin { 2.times { |i| Heddle.schedule(root, i) } }
        Heddle.await(child)
        Array.new(2) { Heddle.suspend }
      end.value

      expect(values).to eq([0, 1])
    end

    it "work in a fiber that another fiber has resumed" do
      value = Heddle.run do
        inner = Fiber.new { Heddle.suspend }
        Heddle.spin { Heddle.schedule(inner, :inner) }
        inner.resume
      end

      expect(value).to eq(:inner)
    end

    it "work for a fiber of Fiber.schedule" do
      value = nil
      Heddle.run do
        fiber = Fiber.schedule { value = Heddle.suspend }
        Heddle.schedule(fiber, :scheduled)
      end

      expect(value).to eq(:scheduled)
    end

    it "let two fibers schedule each other while a third fiber reads" do
      read = IO.pipe do |reader, writer|
        Heddle.run do
          other = nil
          count = 0
          one = Heddle.spin { loop { Heddle.schedule(other) && Heddle.suspend } }
          other = Heddle.spin { loop { (count += 1) && Heddle.schedule(one) && Heddle.suspend } }
          Heddle.spin do
            Heddle.snooze until count > 10
            writer.write("read")
          end
          reader.readpartial(10)
        end
      end

      expect(read).to eq("read")
    end
  end

  describe "Heddle.snooze" do
    it "lets the other fibers run" do
      order = []
      Heddle.run do
        fiber = Heddle.spin { 2.times { |i| (order << i) && Heddle.snooze } }
        2.times { Heddle.snooze || (order << :parent) }
        Heddle.await(fiber)
      end

      expect(order).to eq([0, :parent, 1, :parent])
    end

    it "lets sleepers and readers continue while another fiber snoozes for ever" do
      read = IO.pipe do |reader, writer|
        Heddle.run do
          Heddle.spin { loop { Heddle.snooze } }
          Heddle.spin { sleep(0.001) && writer.write("on time") }
          reader.readpartial(10)
        end
      end

      expect(read).to eq("on time")
    end
  end

  describe "Heddle.terminate" do
    it "runs the fiber's ensure, which may wait" do
      events = []
      virtually do
        fiber = Heddle.spin do
          sleep
        ensure
          sleep(1)
          events << :ensured
        end
        Heddle.snooze
        Heddle.terminate(fiber)
        events << :told
        Heddle.await(fiber)
      end

      expect(events).to eq(%i[told ensured])
    end

    it "isn't handled by a rescue of StandardError" do
      events = []
      Heddle.run do
        fiber = Heddle.spin do
          sleep
        rescue StandardError
          events << :rescued
        ensure
          events << :ensured
        end
        Heddle.snooze
        Heddle.terminate(fiber)
      end

      expect(events).to eq([:ensured])
    end

    it "doesn't interrupt the ensure when it is called again" do
      events = []
      gate = Queue.new
      virtually do
        fiber = Heddle.spin do
          sleep
        ensure
          events << gate.pop
        end
        Heddle.snooze
        3.times { Heddle.terminate(fiber) && sleep(1) }
        gate.push(:ensured)
        Heddle.await(fiber)
      end

      expect(events).to eq([:ensured])
    end

    it "ends the fiber that calls it" do
      value = Heddle.run do
        Heddle.await(Heddle.spin { Heddle.terminate(Fiber.current) && :goes_on })
      end

      expect(value).to be_nil
    end

    it "does nothing to a fiber that has ended" do
      dead = Heddle.run do
        fiber = Heddle.spin { :done }
        Heddle.await(fiber)
        Heddle.terminate(fiber).equal?(fiber)
      end

      expect(dead).to be(true)
    end

    it "ends a fiber of Fiber.schedule, without a report" do
      events = []
      _, errors, = run_ruby(<<~RUBY)
        require "heddle"
        Heddle.run { Heddle.terminate(Fiber.schedule { sleep }) }
      RUBY
      Heddle.run do
        fiber = Fiber.schedule do
          sleep
        ensure
          events << :ensured
        end
        Heddle.terminate(fiber)
      end

      expect([events, errors]).to eq([[:ensured], ""])
    end
  end

  describe "Heddle.state" do
    it "returns :running, :runnable, :waiting or :dead" do
      states = Heddle.run do
        fiber = Heddle.spin { Heddle.suspend }
        seen = [Heddle.state(Fiber.current), Heddle.state(fiber)]
        Heddle.snooze
        seen << Heddle.state(fiber)
        Heddle.schedule(fiber)
        Heddle.await(fiber)
        seen << Heddle.state(fiber)
      end

      expect(states).to eq(%i[running runnable waiting dead])
    end

    it "returns :waiting for a fiber without a scheduler, and for a fiber in Heddle.await" do
      states = Heddle.run do
        parent = Fiber.current
        [Heddle.state(Fiber.new { nil }), *Heddle.await_all(Heddle.spin { Heddle.state(parent) })]
      end

      expect(states).to eq(%i[waiting waiting])
    end

    it "works for fibers of other threads" do
      fibers = Queue.new
      gate = Queue.new
      thread = Thread.new { Heddle.run { fibers.push(Fiber.current) && gate.pop } }
      fiber = fibers.pop
      until_asleep(thread)
      state = Heddle.state(fiber)
      gate.push(:open)
      thread.join

      expect([state, Heddle.state(fiber)]).to eq(%i[waiting dead])
    end
  end
end
