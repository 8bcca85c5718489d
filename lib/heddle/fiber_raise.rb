# frozen_string_literal: true

module Heddle # :nodoc:
  # `Fiber#raise` and `Fiber#kill` switch straight into a fiber that waits, and no hook tells who called them. A fiber
  # that was resumed by another, as a generator is, would never come back.
  module FiberRaise
    # Raises in the fiber; see Ruby's documentation.
    def raise(...)
      turn = Scheduler.raising
      super
    ensure
      Scheduler.raised(turn)
    end

    # Ends the fiber; see Ruby's documentation.
    def kill
      return self if Scheduler.killing(self)

      turn = Scheduler.raising
      super
    ensure
      Scheduler.raised(turn)
    end
  end
  private_constant :FiberRaise

  Fiber.prepend(FiberRaise)
end
