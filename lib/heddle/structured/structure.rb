# frozen_string_literal: true

module Heddle
  # What the methods of structured concurrency have in common.
  module Structure
    module_function

    # The scheduler of this thread. A thread that has none gets one, which Ruby closes at the thread's end.
    #
    # @raise [RuntimeError] if it isn't Heddle's
    def scheduler
      current = Fiber.scheduler
      return current if current.is_a?(Scheduler)
      raise "this thread's scheduler is a #{current.class}, and Heddle needs its own: see Heddle.run" if current

      Scheduler.new.tap { |scheduler| Fiber.set_scheduler(scheduler) }
    end

    # @return [Scheduler, nil]
    def scheduler_if_any
      current = Fiber.scheduler
      current if current.is_a?(Scheduler)
    end

    # @return [Task] that of another, living or remembered, fiber of this thread
    # @raise [TypeError, FiberError]
    def awaited(fiber, scheduler, method)
      Checks.fiber(fiber, method)
      raise FiberError, "#{method}: #{fiber.inspect} can't await itself" if fiber.equal?(Fiber.current)

      task = Task.of(fiber) || Task.watch(fiber, scheduler)
      return task if task&.scheduler.equal?(scheduler)
      unless task || fiber.alive?
        raise FiberError,
              "#{method}: #{fiber.inspect} is dead, and was not made by Heddle.spin"
      end

      raise FiberError, "#{method}: #{fiber.inspect} is not one that this thread has spun or scheduled"
    end

    # Whether the fiber is its thread's root, and the thread's scheduler is known to have it for the root of a tree.
    def root?(fiber, scheduler)
      fiber.blocking? && Task.root(scheduler).fiber.equal?(fiber)
    end

    # Waits in a blocking fiber, such as the root, are none of the scheduler's: nobody else would run. There the block
    # gets a fiber of its own, which has ended when this returns.
    def in_nonblocking_fiber
      return yield unless Fiber.current.blocking? && scheduler_if_any

      begin
        fiber = Heddle.spin { yield } # rubocop:disable Style/ExplicitBlockArgument -- must yield in the caller's frame
        Heddle.await(fiber).first
      ensure
        end_helper(fiber) if fiber&.alive?
      end
    end

    # Something was raised into who waits for it.
    def end_helper(fiber)
      Heddle.terminate(fiber)
      # After Ctrl-C nobody waits for anything but the end of all.
      Heddle.shield { Heddle.await(fiber) } unless $!.is_a?(SignalException) # rubocop:disable Style/SpecialGlobalVars
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
  private_constant :Structure
end
