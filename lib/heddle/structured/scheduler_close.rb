# frozen_string_literal: true

module Heddle # :nodoc:
  # Ends the children of a thread's root fiber when its scheduler closes: at the end of the thread or the process, or by
  # `Fiber.set_scheduler`.
  module SchedulerClose
    # @api private
    def scheduler_close
      begin
        # A thread that is interrupted or killed ends all its fibers at once, in any order.
        interrupted = $!.is_a?(SignalException) || ThreadStatus.thread_aborting? # rubocop:disable Style/SpecialGlobalVars
        late_error = TreeNode.end_root(self) unless interrupted
      ensure
        # A signal may come at any point before this.
        super
      end
      raise late_error if late_error
    end

    private

    # The extension calls this in {Scheduler#close} and {Scheduler#run}, which wait for all other fibers. If one of them
    # waited for the calling fiber, both would wait for ever. {TreeNode#await} refuses the wait that comes afterwards.
    #
    # @param method [String]
    # @raise [FiberError] in a fiber that other fibers wait for, as a parent waits for its children
    def expect_not_awaited(method)
      node = TreeNode.of(Fiber.current)
      return unless node

      node.reset_after_fork(self)
      return unless node.awaited?

      raise FiberError, "Heddle::Scheduler##{method} waits for the other fibers, and one of them waits for this one: " \
                        "call it in a fiber that no other awaits, or end the fibers with Heddle.stop"
    end
  end
  private_constant :SchedulerClose

  Scheduler.prepend(SchedulerClose)
end
