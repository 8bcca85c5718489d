# frozen_string_literal: true

module Heddle # :nodoc:
  # `Fiber#raise` and `Fiber#kill` switch straight into a waiting fiber, and no hook tells the scheduler which fiber
  # called them. Without this patch, a caller that another fiber has resumed, such as a generator, would never run
  # again.
  module FiberRaise
    # Raises in the fiber; see Ruby's documentation.
    def raise(...)
      Native.raising { super }
    end

    # Ends the fiber; see Ruby's documentation.
    def kill
      begin
        Native.raising { super } unless Native.killing(self)
      ensure
        # Ruby kills a fiber that has not begun without running anything in it. So its task, and its scheduler, learn of
        # the end here.
        unless alive?
          TreeNode.of(self)&.killed
          Native.killed(self)
        end
      end
      self
    end
  end
  private_constant :FiberRaise

  Patches.add { Fiber.prepend(FiberRaise) }
end
