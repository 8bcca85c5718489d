# frozen_string_literal: true

module Heddle # :nodoc:
  # `Fiber#raise` and `Fiber#kill` switch straight into a fiber that waits, and no hook tells who called them. A fiber
  # that was resumed by another, as a generator is, would never come back.
  module FiberRaise
    # Raises in the fiber; see Ruby's documentation.
    def raise(...)
      Scheduler.__send__(:raising) { super }
    end

    # Ends the fiber; see Ruby's documentation.
    def kill
      return self if Scheduler.__send__(:killing, self)

      Scheduler.__send__(:raising) { super }
    end
  end
  private_constant :FiberRaise

  Fiber.prepend(FiberRaise)
end
