# frozen_string_literal: true

module Heddle # :nodoc:
  class << self
    # Runs a block that must not be broken off. While it runs, other fibers cannot cancel or terminate this one, and no
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
  end
end
