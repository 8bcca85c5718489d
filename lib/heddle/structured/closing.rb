# frozen_string_literal: true

module Heddle # :nodoc:
  # A thread's root fiber is a parent, too. It ends when the scheduler is closed: with the thread, the process, or
  # `Fiber.set_scheduler`.
  module Closing
    # @api private
    def scheduler_close
      # Who is interrupted or killed has all fibers end at once, and waits for no order.
      interrupted = $!.is_a?(SignalException) || Thread.current.status == "aborting" # rubocop:disable Style/SpecialGlobalVars
      begin
        late = Task.end_root(self) unless interrupted
      rescue Exception # rubocop:disable Lint/RescueException -- raised when all others have ended, too
        super
        raise
      end
      super
      raise late if late
    end

    private

    # Called by {Scheduler#close}, which waits for all other fibers: none of them may wait for the one that calls.
    #
    # @raise [FiberError] in a fiber that others wait for, as a parent waits for its children
    def expect_not_awaited
      task = Task.of(Fiber.current)
      return unless task

      task.follow_fork(self)
      return unless task.awaited?

      raise FiberError, "Heddle::Scheduler#close waits for the other fibers, and one of them waits for this one: " \
                        "call it in a fiber that no other awaits, or end the fibers with Heddle.terminate"
    end
  end
  private_constant :Closing

  Scheduler.prepend(Closing)

  # Ruby kills a fiber that has not begun without running anything in it.
  module FiberKill
    # Ends the fiber; see Ruby's documentation.
    def kill
      super.tap { Task.of(self)&.killed unless alive? }
    end
  end
  private_constant :FiberKill

  Fiber.prepend(FiberKill)
end
