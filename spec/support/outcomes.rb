# frozen_string_literal: true

# The outcome of a call on a plain thread and in a fiber: its value, its error, or that it waits.
module Outcomes
  # A call that `may_wait` has the outcome :waits as soon as its thread waits. Any other call has to end.
  def expect_same_outcome(may_wait: false, &call)
    expect(Outcomes.in_fiber(may_wait, &call)).to eq(Outcomes.on_thread(may_wait, &call))
  end

  # Returns the error that the block raises, or nil.
  def error_of
    yield
    nil
  rescue StandardError => e
    e
  end

  module_function

  def on_thread(may_wait, &call)
    outcome_of(Thread.new { of(&call) }, may_wait)
  end

  def in_fiber(may_wait, &call)
    outcome_of(Thread.new { Heddle.run { of(&call) } }, may_wait)
  end

  def outcome_of(thread, may_wait)
    Settling.one(thread) if may_wait
    return thread.value unless may_wait && thread.alive?

    thread.kill.join
    :waits
  end

  # Leaves out what the message says of the IO: numbers and paths differ each time.
  def of
    [:value, yield]
  rescue StandardError => e
    [e.class, e.message.split(" @ ").first]
  end
end
