# frozen_string_literal: true

module Heddle # :nodoc:
  # Raised in the block of {cancel_after} when its time has elapsed. It is not a StandardError, so a `rescue` without a
  # class in the block does not rescue it. It is raised in the block even if {cancel_after} was given another error to
  # raise outside.
  class Cancelled < Exception # rubocop:disable Lint/InheritException
    # @param message [String]
    def initialize(message = "the time limit has elapsed")
      super
    end
  end

  # Raised in the block of {move_on_after} when its time has elapsed. Each call recognizes its own exception.
  class MoveOn < Exception; end # rubocop:disable Lint/InheritException
  private_constant :MoveOn

  class << self
    # Runs the block with a time limit. When the time has elapsed, the block's current wait is cancelled, in the kernel,
    # too, and an exception is raised there. A block that computes gets the exception at its next wait, or at once if
    # its fiber can be preempted.
    #
    # No `rescue => e` in the block rescues the exception. If `error` is a StandardError, the block gets a {Cancelled},
    # which becomes `error` at the end of the block. If the block rescues Exception, the exception is raised again at
    # its next wait.
    #
    # Calls may be nested: the innermost one whose time has elapsed acts. A block that has ended gets no exception.
    #
    # In a blocking fiber, such as a thread's root, the block runs in a fiber of its own. So `break` and `return` do not
    # leave the block there.
    #
    # The name is Polyphony's; the idea is that of Trio's `fail_after`.
    #
    # @param seconds [Float, Integer, Rational] the limit in seconds
    # @param error [Class, Exception] what is raised at the end of the block
    # @yield the block to run
    # @return [Object] the block's value
    # @raise `error` if the time elapses
    # @raise [ArgumentError] without a block, or for seconds that are negative, infinite or NaN
    # @raise [TypeError] for seconds that are not a number, or an error that is not an exception
    # @example
    #   begin
    #     Heddle.cancel_after(5.0) { socket.gets }
    #   rescue Heddle::Cancelled
    #     "too late"
    #   end
    def cancel_after(seconds, error = Cancelled, &block)
      ArgumentChecks.block(block, "Heddle.cancel_after")
      ArgumentChecks.seconds(seconds, "Heddle.cancel_after")
      ArgumentChecks.exception(error, "Heddle.cancel_after")
      cancelled = Cancelled.new("cancel_after: #{seconds} s elapsed")
      return limit(seconds, cancelled, block) if error.equal?(Cancelled)

      kind = error.is_a?(Class) ? error : error.class
      return limit(seconds, error.exception, block) unless kind <= StandardError

      limit_with_error(seconds, cancelled, error, block)
    end

    # Like {cancel_after}, but returns `value` instead of raising. The name is Polyphony's and Trio's.
    #
    # @param seconds [Float, Integer, Rational] the limit in seconds
    # @param value [Object] what to return if the time elapses
    # @yield the block to run
    # @return [Object] the block's value, or `value`
    # @raise [ArgumentError] without a block, or for seconds that are negative, infinite or NaN
    # @raise [TypeError] for seconds that are not a number
    # @example
    #   Heddle.move_on_after(5.0, value: "too late") { socket.gets }
    def move_on_after(seconds, value: nil, &block)
      ArgumentChecks.block(block, "Heddle.move_on_after")
      ArgumentChecks.seconds(seconds, "Heddle.move_on_after")
      move_on = MoveOn.new("move_on_after: #{seconds} s elapsed")
      begin
        limit(seconds, move_on, block)
      rescue MoveOn => e
        raise unless e.equal?(move_on)

        value
      end
    end

    private

    # Raises `cancelled` in the block, and `error` outside.
    def limit_with_error(seconds, cancelled, error, block)
      limit(seconds, cancelled, block)
    rescue Cancelled => e
      raise unless e.equal?(cancelled)

      late = error.exception
      # The backtrace shows where the block waited.
      late.set_backtrace(e.backtrace) unless late.backtrace || late.frozen?
      raise late
    end

    def limit(seconds, error, block)
      scheduler = Context.scheduler
      Context.in_nonblocking_fiber { scheduler.__send__(:limit, seconds, error) { block.call } }
    end
  end
end
