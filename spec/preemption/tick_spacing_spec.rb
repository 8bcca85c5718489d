# frozen_string_literal: true

RSpec.describe "Ticks beside fibers that all yield by themselves" do
  # So long a quantum that an example that waits for its end fails by the time limit.
  quantum = 60
  # Seconds in which ticks that are not rarer than usual come thirty times.
  thirty_ticks = 0.03

  # Yields until the block, which gets the share of the usual ticks that came meanwhile, is true.
  define_method(:yield_until) do |&block|
    share = 1
    until block.call(share)
      began = Clock.now
      before = Ticking.wakings
      sleep(0) until Clock.now > began + thirty_ticks
      share = (Ticking.wakings - before) * 0.001 / (Clock.now - began)
    end
  end

  # The block runs in a fiber. Beside it another one yields all the time, until the block calls what it gets, or ends.
  def beside_yielding_fiber(**)
    Heddle.run(preempt: :all, tick: 0.001, **) do
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
    rare = nil
    beside_yielding_fiber(ticker: :timerfd) { yield_until { |share| rare = share < 0.5 } }
    expect(rare).to be true
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
