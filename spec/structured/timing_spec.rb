# frozen_string_literal: true

RSpec.describe Heddle do
  # Passes a Proc to the block that returns how many seconds have passed.
  def timed
    virtually do
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      # A Float does not tell nanoseconds.
      yield -> { (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).round(3) }
    end
  end

  describe ".every" do
    it "runs the block after each interval until a break" do
      times = []
      timed do |clock|
        Heddle.every(5) { times.push(clock.call).size == 4 && break }
      end

      expect(times).to eq([5, 10, 15, 20])
    end

    it "returns the value of the break" do
      expect(virtually { Heddle.every(3600) { break :broken } }).to eq(:broken)
    end

    it "doesn't drift by the duration of the block" do
      times = []
      timed do |clock|
        Heddle.every(20) { times.push(clock.call).size == 4 ? break : sleep(15) }
      end

      expect(times).to eq([20, 40, 60, 80])
    end

    it "leaves out the times that the block misses" do
      times = []
      timed do |clock|
        Heddle.every(10) do
          times << clock.call
          sleep(45) if times.one?
          break if times.size == 3
        end
      end

      expect(times).to eq([10, 60, 70])
    end

    it "doesn't treat a StopIteration as its end" do
      expect { Heddle.run { Heddle.every(0) { raise StopIteration } } }.to raise_error(StopIteration)
    end

    it "lets the other fibers run with an interval of 0" do
      value = Heddle.run do
        Heddle.spin(background: true) { Heddle.every(0) { :again } }
        sleep(a_moment) && :slept
      end

      expect(value).to eq(:slept)
    end

    it "works in a thread's root fiber, while the other fibers continue" do
      events = []
      with_scheduler do
        Heddle.spin { sleep(a_moment) && (events << :fiber) }
        Heddle.every(0.001) { events.any? && break }
        events << :root
      end

      expect(events).to eq(%i[fiber root])
    end
  end

  describe ".after" do
    it "runs the block later, in a child" do
      events = []
      value = virtually do
        fiber = Heddle.after(60) { (events << :later) && :value }
        events << :first
        Heddle.await(fiber)
      end

      expect([events, value]).to eq([%i[first later], :value])
    end

    it "is awaited by its parent, unless it is in the background, and passes its arguments on" do
      events = []
      virtually do
        Heddle.after(1, :awaited) { |kind| events << kind }
        Heddle.after(2, :never, background: true) { |kind| events << kind }
      end

      expect(events).to eq([:awaited])
    end

    it "can be cancelled by Heddle.stop" do
      events = []
      virtually do
        later = Heddle.after(1) { events << :ran }
        Heddle.stop(later)
        sleep(3)
      end

      expect(events).to eq([])
    end
  end
end
