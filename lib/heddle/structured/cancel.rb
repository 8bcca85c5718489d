# frozen_string_literal: true

module Heddle # :nodoc:
  # The time of a {cancel_after} was up. No StandardError, so that a `rescue` in the block doesn't take it for an error
  # of what the block does; it is raised in the block even if another error is what leaves it.
  class Cancelled < Exception # rubocop:disable Lint/InheritException
    def initialize(message = "the time was up")
      super
    end
  end

  # The time of a {move_on_after} was up. Each call knows its own.
  class MoveOn < Exception; end # rubocop:disable Lint/InheritException
  private_constant :MoveOn

  class << self
    # Runs the block, and raises in it if it takes too long: whatever it waits for then is ended, and what the kernel
    # has been told to do is cancelled there before the exception goes on. A block that computes gets it at its next
    # wait.
    #
    # No `rescue => e` in the block takes it: inside, an `error` that is a StandardError is a {Cancelled}, and becomes
    # `error` at the end of the block. A block that rescues Exception gets it again at its next wait.
    #
    # Blocks may be nested; the innermost one whose time is up acts. Nothing happens to a block that has ended.
    #
    # In a blocking fiber, as a thread's root is one, the block runs in a fiber of its own: `break` and `return` don't
    # lead out of it there.
    #
    # @param seconds [Numeric]
    # @param error [Class, Exception] what leaves the block
    # @return [Object] the block's value
    # @raise `error`, if the block takes too long
    # @raise [ArgumentError] without a block, or for seconds that are negative, infinite or not a number
    # @raise [TypeError] for seconds that are no number, or an error that can't be raised
    # @example
    #   begin
    #     Heddle.cancel_after(5) { socket.gets }
    #   rescue Heddle::Cancelled
    #     "too late"
    #   end
    def cancel_after(seconds, error = Cancelled, &block)
      Checks.block(block, "Heddle.cancel_after")
      Checks.seconds(seconds, "Heddle.cancel_after")
      Checks.exception(error, "Heddle.cancel_after")
      kind = error.is_a?(Class) ? error : error.class
      kind <= StandardError ? limit_with_error(seconds, error, block) : limit(seconds, error.exception, block)
    end

    # Like {cancel_after}, but returns `value` instead of raising.
    #
    # @param seconds [Numeric]
    # @param value [Object] what to return if the block takes too long
    # @return [Object] the block's value, or `value`
    # @raise [ArgumentError] without a block, or for seconds that are negative, infinite or not a number
    # @raise [TypeError] for seconds that are no number
    # @example
    #   Heddle.move_on_after(5, value: "too late") { socket.gets }
    def move_on_after(seconds, value: nil, &block)
      Checks.block(block, "Heddle.move_on_after")
      Checks.seconds(seconds, "Heddle.move_on_after")
      mine = MoveOn.new("the time was up")
      begin
        limit(seconds, mine, block)
      rescue MoveOn => e
        raise unless e.equal?(mine)

        value
      end
    end

    # Runs the block, which is to be finished: when somebody cancels or terminates this fiber meanwhile, or a child
    # fails, that happens at the end of the block. Time limits that are set in the block work, and so do Ruby's own
    # `Fiber#raise`, `Fiber#kill` and what is meant for the whole thread.
    #
    # @return [Object] the block's value
    # @raise what was held back
    # @raise [ArgumentError] without a block
    # @example
    #   Heddle.shield { account.withdraw(1); other.deposit(1) }
    def shield(&block)
      Checks.block(block, "Heddle.shield")
      scheduler = Structure.scheduler_if_any
      scheduler ? scheduler.__send__(:shield, &block) : yield
    end

    private

    def limit_with_error(seconds, error, block)
      mine = Cancelled.new
      begin
        limit(seconds, mine, block)
      rescue Cancelled => e
        raise unless e.equal?(mine)

        late = error.exception
        # It tells where the block waited.
        late.set_backtrace(e.backtrace) unless late.backtrace || late.frozen?
        raise late
      end
    end

    def limit(seconds, error, block)
      scheduler = Structure.scheduler
      Structure.in_nonblocking_fiber { scheduler.__send__(:limit, seconds, error) { block.call } }
    end
  end
end
