# frozen_string_literal: true

# What a call comes to on a plain thread, and in a fiber of Heddle's: its value, its error, or that it waits.
module Outcomes
  # Seconds after which a call is taken to wait. A machine that stands still meanwhile is given a second chance.
  LIMITS = [0.05, 2].freeze

  def expect_same_outcome(&call)
    outcomes = LIMITS.lazy.map { |limit| [Outcomes.in_fiber(limit, &call), Outcomes.on_thread(limit, &call)] }
    fiber, thread = outcomes.find { |fiber, thread| fiber == thread } || outcomes.to_a.last

    expect(fiber).to eq(thread)
  end

  module_function

  def on_thread(limit, &call)
    thread = Thread.new { of(&call) }
    return thread.value if thread.join(limit)

    thread.kill.join
    :waits
  end

  def in_fiber(limit, &call)
    Heddle.run do
      outcome = nil
      fiber = Fiber.schedule { outcome = of(&call) }
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + limit
      sleep(0.001) until outcome || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      fiber.kill if fiber.alive?
      outcome || :waits
    end
  end

  # What Ruby says of the IO is left out: numbers and paths are others each time.
  def of
    [:value, yield]
  rescue StandardError => e
    [e.class, e.message.split(" @ ").first]
  end
end
