# frozen_string_literal: true

require_relative "deadline"

module Heddle # :nodoc:
  # Raised by {cancel_after} when its time has elapsed. A `rescue Timeout::Error` that a program has for
  # `Timeout.timeout` rescues it, too.
  class TimeoutError < Timeout::Error; end

  # Raised in the block of {cancel_after} when its time has elapsed. It is not a StandardError, so a `rescue` without a
  # class in the block does not rescue it. At the end of the block it becomes a {TimeoutError}, or the error that
  # {cancel_after} was given.
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
    # No `rescue => e` in the block rescues the exception. The block gets a {Cancelled}, which becomes `error` at the
    # end of the block: a `rescue => e` around the call rescues that. (Only if `error` is no StandardError, the block
    # gets `error` itself.) If the block rescues Exception, the exception is raised again at its next wait.
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
    # @yieldparam deadline [Deadline] the limit, which can be moved
    # @return [Object] the block's value
    # @raise `error` if the time elapses
    # @raise [ArgumentError] without a block, or for seconds that are negative, infinite or NaN
    # @raise [TypeError] for seconds that are not a number, or an error that is not an exception
    # @raise [RuntimeError] if the thread has no Heddle::Scheduler
    # @example
    #   begin
    #     Heddle.cancel_after(5.0) { socket.gets }
    #   rescue Heddle::TimeoutError
    #     "too late"
    #   end
    def cancel_after(seconds, error = TimeoutError, &block)
      ArgumentChecks.block(block, "Heddle.cancel_after")
      ArgumentChecks.seconds(seconds, "Heddle.cancel_after")
      ArgumentChecks.exception(error, "Heddle.cancel_after")
      scheduler = Context.scheduler("Heddle.cancel_after")
      Context.in_nonblocking_fiber { limit_with_error(scheduler, seconds, error, block) }
    end

    # Like {cancel_after}, but returns `value` instead of raising. The name is Polyphony's and Trio's.
    #
    # @param seconds [Float, Integer, Rational] the limit in seconds
    # @param value [Object] what to return if the time elapses
    # @yieldparam deadline [Deadline] the limit, which can be moved
    # @return [Object] the block's value, or `value`
    # @raise [ArgumentError] without a block, or for seconds that are negative, infinite or NaN
    # @raise [TypeError] for seconds that are not a number
    # @raise [RuntimeError] if the thread has no Heddle::Scheduler
    # @example
    #   Heddle.move_on_after(5.0, value: "too late") { socket.gets }
    def move_on_after(seconds, value: nil, &block)
      ArgumentChecks.block(block, "Heddle.move_on_after")
      ArgumentChecks.seconds(seconds, "Heddle.move_on_after")
      scheduler = Context.scheduler("Heddle.move_on_after")
      Context.in_nonblocking_fiber do
        deadline = Deadline.new(scheduler, seconds, MoveOn, "move_on_after")
        begin
          deadline.limit(block)
        rescue MoveOn => e
          raise unless e.equal?(deadline.exception)

          value
        end
      end
    end

    # Stops a fiber, and does not wait for its end; {await} does. The fiber's wait is cancelled, its `ensure`
    # clauses run, and its value is nil. Further calls change nothing.
    #
    # The `ensure` clauses, and a `rescue Exception`, may wait. But if the fiber rescues the exception and goes on, the
    # exception is raised again at its next wait. A fiber that has not ended within the scheduler's `grace:` is
    # abandoned; see {Scheduler#initialize}.
    #
    # @param fiber [Fiber] a fiber of this thread, made by {spin} or `Fiber.schedule`. It may be the calling fiber. A
    #   dead fiber is left alone.
    # @return [Fiber] the fiber
    # @raise [FiberError] for a root fiber, a fiber of another thread, or a fiber that neither {spin} nor
    #   `Fiber.schedule` made
    # @raise [TypeError] for an argument that is not a Fiber
    # @example
    #   clock = Heddle.spin { Heddle.every(1) { puts Time.now } }
    #   Heddle.stop(clock)
    def stop(fiber)
      ArgumentChecks.fiber(fiber, "Heddle.stop")
      return fiber unless fiber.alive?
      if fiber.blocking?
        raise FiberError, "Heddle.stop: #{fiber.inspect} is a blocking fiber, such as a thread's root; only " \
                          "fibers of Heddle.spin and Fiber.schedule can be stopped"
      end

      scheduler = Context.scheduler("Heddle.stop")
      unless stop_in(scheduler, fiber) || ended?(fiber)
        raise FiberError,
              "Heddle.stop: #{fiber.inspect} was not made by Heddle.spin or Fiber.schedule on this thread"
      end

      Native.raise_deferred(scheduler) if fiber.equal?(Fiber.current)
      fiber
    end

    # Runs a block that must not be broken off. While it runs, other fibers cannot cancel or stop this one, and no
    # child's error is raised in it. All that happens at the end of the block instead.
    #
    # Time limits that are set in the block work as usual. So do Ruby's own `Fiber#raise` and `Fiber#kill`, and
    # exceptions for the whole thread. The idea is that of Trio's shielded cancel scopes.
    #
    # @yield what must not be broken off
    # @return [Object] the block's value
    # @raise an exception that another fiber sent in the meantime
    # @raise [ArgumentError] without a block
    # @example
    #   Heddle.shield { account.withdraw(1); other.deposit(1) }
    def shield(&block)
      ArgumentChecks.block(block, "Heddle.shield")
      scheduler = Context.scheduler_if_any
      scheduler ? Native.shield(scheduler, &block) : yield
    end

    private

    # @return [Boolean] false if the scheduler does not know the fiber
    def stop_in(scheduler, fiber)
      node = TreeNode.of(fiber)
      node&.scheduler.equal?(scheduler) ? node.stop : Native.stop(scheduler, fiber)
    end

    # Whether the fiber has ended while the calling fiber was preempted, or has been abandoned.
    def ended?(fiber)
      !fiber.alive? || TreeNode.of(fiber)&.then { |node| node.ended? || node.left_in_parent? }
    end

    # Raises a {Cancelled} in the block, and `error` outside; or `error` in both places if it is no StandardError.
    def limit_with_error(scheduler, seconds, error, block)
      kind = error.is_a?(Class) ? error : error.class
      return Deadline.new(scheduler, seconds, error.exception).limit(block) unless kind <= StandardError

      deadline = Deadline.new(scheduler, seconds, Cancelled, "cancel_after")
      begin
        deadline.limit(block)
      rescue Cancelled => e
        raise unless e.equal?(deadline.exception)

        raise late_error(error, e)
      end
    end

    def late_error(error, cancelled)
      late = error.equal?(TimeoutError) ? error.new(cancelled.message) : error.exception
      # The backtrace shows where the block waited.
      late.set_backtrace(cancelled.backtrace) unless late.backtrace || late.frozen?
      late
    end
  end
end
