# frozen_string_literal: true

RSpec.describe "Ticks beside fibers that all yield by themselves", :timed do
  # So long a quantum that an example that waits for its end fails by the time limit.
  quantum = 60

  # The block runs in a fiber. Beside it another one yields all the time, until the block calls what it gets, or ends.
  def beside_yielding_fiber(**)
    Heddle.run(preempt: :all, **) do
      ended = false
      Fiber.schedule { sleep(0) until ended }
      Fiber.schedule do
        yield -> { ended = true }
      ensure
        ended = true
      end
    end
  end

  it "become rarer", if: File.directory?("/proc/self/task") do
    share = 1
    tick = 0.02
    earlier = Ticking.threads
    beside_yielding_fiber(ticker: :timerfd, tick:, quantum:) do
      share = Ticking.share(tick, earlier) { |finish| sleep(0) until Clock.now > finish } until share < 0.75
    end
    expect(share).to be < 0.75
  end

  Selection.tickers.each do |ticker|
    it "preempt a fiber that computes after a while: #{ticker}" do
      woken = false
      beside_yielding_fiber(ticker:, quantum:) do |end_other|
        # Seconds after which ticks are rarer.
        a_while = Clock.now + 0.3
        sleep(0) until Clock.now > a_while
        Fiber.schedule do
          woken = sleep(0.001)
          end_other.call
        end
        nil until woken
      end
      expect(woken).to be_truthy
    end
  end
end
