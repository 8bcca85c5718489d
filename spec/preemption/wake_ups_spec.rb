# frozen_string_literal: true

# A fiber checks a condition, finds it false, and calls `block`. It may be preempted and woken in between.
RSpec.describe "A wake-up that comes while a fiber is preempted" do
  def compute_until_preempted
    scheduler = Fiber.scheduler
    before = scheduler.stats[:run_queue][:preemptions_count]
    nil until scheduler.stats[:run_queue][:preemptions_count] > before
  end

  # Whether `block` returns at once in a fiber that was preempted and woken before. The block starts the fiber with the
  # given Proc, and returns the fiber to wake.
  def woken?
    woken = nil
    Heddle.run do
      scheduler = Fiber.scheduler
      fiber = yield(lambda do
        compute_until_preempted
        woken = scheduler.block(:blocker, nil)
      end)
      scheduler.unblock(:blocker, fiber)
    end
    woken
  end

  it "ends its next block at once" do
    expect(woken? { |preempted| YieldingFiber.schedule(&preempted) }).to be true
  end

  it "ends the next block at once of a fiber that another fiber has resumed" do
    found = woken? do |preempted|
      resumed = Fiber.new(&preempted)
      YieldingFiber.schedule { resumed.resume }
      resumed
    end
    expect(found).to be true
  end

  it "ends the next block at once if it comes in a critical section" do
    woken = Heddle.run do
      Heddle.without_preemption { Fiber.scheduler.unblock(:blocker, Fiber.current) }
      Fiber.scheduler.block(:blocker, nil)
    end
    expect(woken).to be true
  end

  it "leaves nothing behind of a fiber that ends without waiting for it" do
    counts = Heddle.run do
      scheduler = Fiber.scheduler
      fiber = YieldingFiber.schedule { compute_until_preempted }
      scheduler.unblock(:blocker, fiber)
      sleep(0) while fiber.alive?
      state_counts
    end
    expect(counts[:fibers]).to eq 2
  end
end
