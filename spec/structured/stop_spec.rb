# frozen_string_literal: true

RSpec.describe "A fiber that is stopped, snoozes, or is asked for its state" do
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
          Heddle.spin(background: true) { loop { Heddle.snooze } }
          Heddle.spin { sleep(a_moment) && writer.write("on time") }
          reader.readpartial(10)
        end
      end

      expect(read).to eq("on time")
    end
  end

  describe "Heddle.stop" do
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
        Heddle.stop(fiber)
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
        Heddle.stop(fiber)
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
        3.times { Heddle.stop(fiber) && sleep(1) }
        gate.push(:ensured)
        Heddle.await(fiber)
      end

      expect(events).to eq([:ensured])
    end

    it "ends the fiber that calls it" do
      value = Heddle.run do
        Heddle.await(Heddle.spin { Heddle.stop(Fiber.current) && :goes_on })
      end

      expect(value).to be_nil
    end

    it "does nothing to a fiber that has ended" do
      dead = Heddle.run do
        fiber = Heddle.spin { :done }
        Heddle.await(fiber)
        Heddle.stop(fiber).equal?(fiber)
      end

      expect(dead).to be(true)
    end

    it "ends a fiber of Fiber.schedule, without a report" do
      events = []
      _, errors, = run_ruby(<<~RUBY)
        require "heddle"
        Heddle.run { Heddle.stop(Fiber.schedule { sleep }) }
      RUBY
      Heddle.run do
        fiber = Fiber.schedule do
          sleep
        ensure
          events << :ensured
        end
        Heddle.stop(fiber)
      end

      expect([events, errors]).to eq([[:ensured], ""])
    end
  end

  describe "Heddle.state" do
    it "returns :running, :runnable, :waiting or :dead" do
      states = Heddle.run do
        queue = Queue.new
        fiber = Heddle.spin { queue.pop }
        seen = [Heddle.state(Fiber.current), Heddle.state(fiber)]
        Heddle.snooze
        seen << Heddle.state(fiber)
        queue << 1
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
