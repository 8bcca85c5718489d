# frozen_string_literal: true

module Heddle # :nodoc:
  # `Fiber#raise` and `Fiber#kill` switch straight into a waiting fiber, and no hook tells the scheduler which fiber
  # called them. Without this patch, a caller that another fiber has resumed, such as a generator, would never run
  # again.
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
