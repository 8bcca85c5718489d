# frozen_string_literal: true

module Heddle # :nodoc:
  class << self
    # Runs the block repeatedly, in the calling fiber. The first run is after one interval. The schedule does not drift:
    # the time that the block takes delays no later run. Runs whose time has passed are skipped.
    #
    # @param interval [Float, Integer, Rational] seconds between two runs
    # @yield the block to run
    # @return [Object] the value of `break` in the block; without a `break` it never returns
    # @raise [ArgumentError] without a block, or for an interval that is negative, infinite or NaN
    # @raise [TypeError] for an interval that is not a number
    # @example
    #   Heddle.spin(background: true) { Heddle.every(1.0) { puts Time.now } }
    def every(interval)
      ArgumentChecks.block(block_given?, "Heddle.every")
      ArgumentChecks.seconds(interval, "Heddle.every")
      scheduler = Context.scheduler("Heddle.every")
      due = Context.now
      while true # rubocop:disable Style/InfiniteLoop -- `loop` would rescue a StopIteration that the block raises
        due = next_due(due, interval)
        wait_until(due, scheduler)
        yield
      end
    end

    # Runs the block later, in a new fiber as of {spin}.
    #
    # @param delay [Float, Integer, Rational] seconds
    # @param arguments [Array] passed to the block
    # @param name [#to_s, nil] the new fiber's name; see {annotate}
    # @param background [Boolean] whether the calling fiber's block does not wait for it
    # @yield [*arguments] the block to run
    # @return [Task] the new fiber; its value is the block's value
    # @raise [ArgumentError] without a block, or for a delay that is negative, infinite or NaN
    # @raise [TypeError] for a delay that is not a number
    # @example
    #   Heddle.run { Heddle.after(0.5) { puts "half a second later" } }
    def after(delay, *arguments, name: nil, background: false, &block)
      ArgumentChecks.block(block, "Heddle.after")
      ArgumentChecks.seconds(delay, "Heddle.after")
      scheduler = Context.scheduler("Heddle.after")
      due = Context.now + delay
      spin(*arguments, name:, background:) do |*passed|
        wait_until(due, scheduler)
        block.call(*passed)
      end
    end

    private

    # The first time after `last`, in steps of the interval, that has not passed.
    def next_due(last, interval)
      return Context.now if interval.zero?

      missed = ((Context.now - last) / interval).floor
      last + (interval * (missed + 1))
    end

    # Sleeps, in blocking fibers, too. The other fibers run at least once, even if the time has passed already.
    def wait_until(due, scheduler)
      return scheduler.yield unless (left = due - Context.now).positive?

      while left.positive?
        scheduler.kernel_sleep(left)
        left = due - Context.now
      end
    end
  end
end
