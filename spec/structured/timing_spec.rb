# frozen_string_literal: true

RSpec.describe Heddle do
  describe ".every" do
    it "runs the block after each interval until a break" do
      count = 0
      took = seconds do
        Heddle.run { Heddle.every(0.005) { (count += 1) == 4 && break } }
      end

      expect([count, took >= 0.02]).to eq([4, true])
    end

    it "returns the value of the break" do
      expect(Heddle.run { Heddle.every(0.001) { break :broken } }).to eq(:broken)
    end

    it "doesn't drift by the duration of the block" do
      fifth = lambda do
        seconds do
          count = 0
          Heddle.run { Heddle.every(0.02) { (count += 1) == 5 ? break : sleep(0.015) } }
        end
      end
      # With drift the fifth run could not come before five intervals and four blocks are over. The machine may be
      # busy, but not each time.
      took = Array.new(20).lazy.map { fifth.call }.find { |time| time < (5 * 0.02) + (4 * 0.015) }

      expect(took).to be >= 5 * 0.02
    end

    it "leaves out the times that the block misses" do
      times = []
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      Heddle.run do
        Heddle.every(0.01) do
          times << (Process.clock_gettime(Process::CLOCK_MONOTONIC) - started)
          sleep(0.045) if times.size == 1
          break if times.size == 5
        end
      end

      # A block that made up for the missed times would run four times at once after its first run.
      expect(times[3] - times[1]).to be >= 0.01
      expect(times[4] - times[2]).to be >= 0.01
    end

    it "doesn't treat a StopIteration as its end" do
      expect { Heddle.run { Heddle.every(0) { raise StopIteration } } }.to raise_error(StopIteration)
    end

    it "lets the other fibers run with an interval of 0" do
      value = Heddle.run do
        Heddle.spin { Heddle.every(0) { :again } }
        sleep(0.005) && :slept
      end

      expect(value).to eq(:slept)
    end

    it "works in a thread's root fiber, while the other fibers continue" do
      events = []
      Thread.new do
        Heddle.spin { sleep(0.001) && (events << :fiber) }
        # The fiber begins its sleep before the root begins its own, however slow the machine is.
        Heddle.snooze
        Heddle.every(0.01) { (events << :root) && break }
      end.join

      expect(events).to eq(%i[fiber root])
    end
  end

  describe ".after" do
    it "runs the block later, in a child" do
      events = []
      value = Heddle.run do
        fiber = Heddle.after(0.002) { (events << :later) && :value }
        events << :first
        Heddle.await(fiber)
      end

      expect([events, value]).to eq([%i[first later], :value])
    end

    it "doesn't run the block when its parent ends first" do
      events = []
      Heddle.run { Heddle.after(0.001) { events << :ran } && :done }

      expect(events).to eq([])
    end

    it "can be cancelled by Heddle.terminate" do
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
