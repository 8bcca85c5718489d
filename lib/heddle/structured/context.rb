# frozen_string_literal: true

module Heddle
  # The context of a call: the thread's scheduler, the root fiber, and the clock.
  module Context
    module_function

    # Returns this thread's scheduler. A thread without one gets one, which Ruby closes at the thread's end.
    #
    # @return [Scheduler]
    # @raise [RuntimeError] if the thread has another library's scheduler
    def scheduler
      current = Fiber.scheduler
      return current if current.is_a?(Scheduler)

      if current
        raise "this thread's scheduler is a #{current.class}, but Heddle needs its own Heddle::Scheduler: " \
              "call Heddle.run on another thread"
      end

      Scheduler.new.tap { |scheduler| Fiber.set_scheduler(scheduler) }
    end

    # @return [Scheduler, nil]
    def scheduler_if_any
      current = Fiber.scheduler
      current if current.is_a?(Scheduler)
    end

    # @param fiber [Fiber] another fiber of this thread
    # @param scheduler [Scheduler]
    # @param method [String] the public method, for messages
    # @return [Task] the fiber's task
    # @raise [TypeError, FiberError] if the fiber cannot be awaited
    def task_to_await(fiber, scheduler, method)
      ArgumentChecks.fiber(fiber, method)
      raise FiberError, "#{method}: #{fiber.inspect} can't await itself" if fiber.equal?(Fiber.current)

      task = Task.of(fiber) || Task.observe(fiber, scheduler)
      return task if task&.scheduler.equal?(scheduler)
      unless task || fiber.alive?
        raise FiberError,
              "#{method}: #{fiber.inspect} is dead, and was not made by Heddle.spin, so its value is unknown"
      end

      raise FiberError, "#{method}: #{fiber.inspect} was not made by Heddle.spin or Fiber.schedule on this thread"
    end

    # @return [Boolean] whether the fiber is the root of its thread and of a tree of fibers
    def root?(fiber, scheduler)
      fiber.blocking? && Task.root(scheduler).fiber.equal?(fiber)
    end

    # Runs the block in a non-blocking fiber. In a blocking fiber, such as a thread's root, Ruby waits without asking
    # the scheduler, and no other fiber would run. There the block gets a fiber of its own, which has ended when this
    # returns.
    #
    # @return [Object] the block's value
    # @raise the block's error
    def in_nonblocking_fiber
      return yield unless Fiber.current.blocking? && scheduler_if_any

      begin
        fiber = Heddle.spin { yield } # rubocop:disable Style/ExplicitBlockArgument -- must yield in the caller's frame
        Heddle.await(fiber).first
      ensure
        end_helper(fiber) if fiber&.alive?
      end
    end

    # Ends the fiber of {in_nonblocking_fiber}, after an exception was raised in the waiting fiber.
    def end_helper(fiber)
      Heddle.terminate(fiber)
      # A signal ends all fibers; waiting for this one would delay that.
      Heddle.shield { Heddle.await(fiber) } unless $!.is_a?(SignalException) # rubocop:disable Style/SpecialGlobalVars
    end

    # @return [Float] seconds on the monotonic clock
    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
  private_constant :Context
end
