# frozen_string_literal: true

module Heddle # :nodoc:
  # Ruby kills a fiber that has not begun without running anything in it. So the fiber's task learns of the end here.
  module FiberKill
    # Ends the fiber; see Ruby's documentation.
    def kill
      super.tap { Task.of(self)&.killed unless alive? }
    end
  end
  private_constant :FiberKill

  Fiber.prepend(FiberKill)
end
