# frozen_string_literal: true

module Heddle # :nodoc:
  class << self
    # Runs the block again and again, in the fiber that calls. The first time is after one interval. The times are kept:
    # what the block takes delays none of them, and those that it misses are left out.
    #
    # @param interval [Numeric] seconds
    # @return [Object] what `break` gives; else it goes on for ever
    # @raise [ArgumentError] without a block, or for an interval that is negative, infinite or not a number
    # @raise [TypeError] for what is no number
    # @example
    #   Heddle.spin { Heddle.every(1) { puts Time.now } }
    def every(interval)
      Checks.block(block_given?, "Heddle.every")
      Checks.seconds(interval, "Heddle.every")
      scheduler = Structure.scheduler
      due = Structure.now
      while true # rubocop:disable Style/InfiniteLoop -- `loop` would take a StopIteration of the block's for its end
        due = next_due(due, interval)
        wait_until(due, scheduler)
        yield
      end
    end

    # Runs the block later, in a new fiber, which is a child of the one that calls.
    #
    # @param delay [Numeric] seconds
    # @return [Fiber] the new fiber; its value is the block's
    # @raise [ArgumentError] without a block, or for a delay that is negative, infinite or not a number
    # @raise [TypeError] for what is no number
    # @example
    #   Heddle.run { Heddle.await(Heddle.after(0.5) { puts "half a second later" }) }
    def after(delay)
      Checks.block(block_given?, "Heddle.after")
      Checks.seconds(delay, "Heddle.after")
      scheduler = Structure.scheduler
      due = Structure.now + delay
      spin do
        wait_until(due, scheduler)
        yield
      end
    end

    private

    def next_due(last, interval)
      return Structure.now if interval.zero?

      missed = ((Structure.now - last) / interval).floor
      last + (interval * (missed + 1))
    end

    # At least others have a turn. Works in blocking fibers, too.
    def wait_until(due, scheduler)
      return scheduler.yield unless (left = due - Structure.now).positive?

      while left.positive?
        scheduler.kernel_sleep(left)
        left = due - Structure.now
      end
    end
  end
end
