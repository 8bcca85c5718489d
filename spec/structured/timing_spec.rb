# frozen_string_literal: true

RSpec.describe "Timing" do
  describe "Heddle.every" do
    it "runs the block after each interval, until it breaks" do
      count = 0
      took = seconds do
        Heddle.run { Heddle.every(0.005) { (count += 1) == 4 && break } }
      end

      expect([count, took >= 0.02]).to eq([4, true])
    end

    it "gives what break gives" do
      expect(Heddle.run { Heddle.every(0.001) { break :broken } }).to eq(:broken)
    end

    it "doesn't drift by what the block takes" do
      times = []
      Heddle.run do
        start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        Heddle.every(0.02) do
          times << (Process.clock_gettime(Process::CLOCK_MONOTONIC) - start)
          break if times.size == 5

          sleep(0.01)
        end
      end

      # Each is due at a multiple of the interval, however late the ones before it were: with drift, none of the last
      # would come near its own.
      expect(times.each_with_index.map { |time, i| time - (0.02 * (i + 1)) }).to all(be >= 0)
      expect(times.map { |time| time % 0.02 }.min(3)).to all(be < 0.01)
    end

    it "leaves out the times that the block misses" do
      count = 0
      Heddle.run do
        Heddle.move_on_after(0.05) { Heddle.every(0.01) { (count += 1) && sleep(0.025) } }
      end

      expect(count).to be <= 3
    end

    it "doesn't take a StopIteration for the end" do
      expect { Heddle.run { Heddle.every(0) { raise StopIteration } } }.to raise_error(StopIteration)
    end

    it "lets the others have their turns with an interval of nothing" do
      value = Heddle.run do
        Heddle.spin { Heddle.every(0) { :again } }
        sleep(0.005) && :slept
      end

      expect(value).to eq(:slept)
    end

    it "works in a thread's root, and the fibers go on meanwhile" do
      events = []
      Thread.new do
        Heddle.spin { sleep(0.001) && (events << :fiber) }
        Heddle.every(0.01) { (events << :root) && break }
      end.join

      expect(events).to eq(%i[fiber root])
    end
  end

  describe "Heddle.after" do
    it "runs the block later, in a child" do
      events = []
      value = Heddle.run do
        fiber = Heddle.after(0.002) { (events << :later) && :value }
        events << :first
        Heddle.await(fiber)
      end

      expect([events, value]).to eq([%i[first later], [:value]])
    end

    it "doesn't run the block when its parent ends before" do
      events = []
      Heddle.run { Heddle.after(0.001) { events << :ran } && :done }

      expect(events).to eq([])
    end

    it "can be called off" do
      events = []
      Heddle.run do
        later = Heddle.after(0.001) { events << :ran }
        Heddle.terminate(later)
        sleep(0.003)
      end

      expect(events).to eq([])
    end
  end
end
