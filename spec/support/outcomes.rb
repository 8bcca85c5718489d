# frozen_string_literal: true

# The outcome of a call on a plain thread and in a fiber: its value, its error, or that it waits.
module Outcomes
  # Seconds after which a call counts as waiting. The second, longer limit is for a machine that was too busy.
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

  # Leaves out what the message says of the IO: numbers and paths differ each time.
  def of
    [:value, yield]
  rescue StandardError => e
    [e.class, e.message.split(" @ ").first]
  end
end
