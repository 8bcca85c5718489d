# frozen_string_literal: true

module Heddle # :nodoc:
  class << self
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
    #   Heddle.terminate(clock)
    def terminate(fiber)
      ArgumentChecks.fiber(fiber, "Heddle.terminate")
      return fiber unless fiber.alive?
      if fiber.blocking?
        raise FiberError, "Heddle.terminate: #{fiber.inspect} is a blocking fiber, such as a thread's root; only " \
                          "fibers of Heddle.spin and Fiber.schedule can be stopped"
      end

      scheduler = Context.scheduler("Heddle.terminate")
      unless Native.stop(scheduler, fiber) || ended?(fiber)
        raise FiberError,
              "Heddle.terminate: #{fiber.inspect} was not made by Heddle.spin or Fiber.schedule on this thread"
      end

      Native.raise_deferred(scheduler) if fiber.equal?(Fiber.current)
      fiber
    end
  end
end
