# frozen_string_literal: true

module Heddle
  # The context of a call: the thread's scheduler, the root fiber, and the clock.
  module Context
    module_function

    # @param method [String] the public method, for the message
    # @return [Scheduler] this thread's scheduler
    # @raise [RuntimeError] if the thread has none, or another library's
    def scheduler(method)
      current = Fiber.scheduler
      return current if current.is_a?(Scheduler)
      raise foreign_scheduler(current, method) if current

      raise "#{method} needs a scheduler, but this thread has none: wrap the program in Heddle.run { }"
    end

    # Returns this thread's scheduler. A thread without one gets one, which Ruby closes at the thread's end.
    #
    # @param method [String] the public method, for the message
    # @return [Scheduler]
    # @raise [RuntimeError] if the thread has another library's scheduler
    def scheduler_or_new(method)
      return scheduler(method) if Fiber.scheduler

      Scheduler.new.tap { |scheduler| Fiber.set_scheduler(scheduler) }
    end

    # @param current [Object] this thread's scheduler
    # @param method [String] the public method, for the message
    # @return [RuntimeError] for a thread that has another library's scheduler
    def foreign_scheduler(current, method)
      RuntimeError.new("#{method} needs a Heddle::Scheduler of its own, but this thread's scheduler is a " \
                       "#{current.class}: wrap the call in a thread, Thread.new { Heddle.run { } }.value")
    end

    # @return [Scheduler, nil]
    def scheduler_if_any
      current = Fiber.scheduler
      current if current.is_a?(Scheduler)
    end

    # @param fiber [Fiber] another fiber of this thread
    # @param scheduler [Scheduler]
    # @param method [String] the public method, for messages
    # @return [TreeNode] the fiber's node
    # @raise [TypeError, FiberError] if the fiber cannot be awaited
    def node_to_await(fiber, scheduler, method)
      ArgumentChecks.fiber(fiber, method)
      raise FiberError, "#{method}: #{fiber.inspect} can't await itself" if fiber.equal?(Fiber.current)

      node = TreeNode.observed(fiber, scheduler)
      return node if node&.left_in_parent?

      if node&.scheduler.equal?(scheduler)
        refuse_ancestor(node, scheduler, method)
        return node
      end
      unless node || fiber.alive?
        raise FiberError,
              "#{method}: #{fiber.inspect} is dead, and was not made by Heddle.spin, so its value is unknown"
      end

      raise FiberError, "#{method}: #{fiber.inspect} was not made by Heddle.spin or Fiber.schedule on this thread"
    end

    # @raise [FiberError] if the node's fiber waits for the current one at its end, so that both would wait for ever
    def refuse_ancestor(node, scheduler, method)
      current = TreeNode.current(scheduler)
      return if node.ended? || node.parent.equal?(current) || !current.delays?(node)

      raise FiberError, "#{method}: #{node.fiber.inspect} waits at its end for this fiber, which it has started: " \
                        "only a fiber with background: true can await the fibers above it"
    end

    # @return [Boolean] whether the current fiber has a node of its own: the scheduler has made it
    def own_task?(scheduler)
      TreeNode.current(scheduler).fiber.equal?(Fiber.current) && !Fiber.current.blocking?
    end

    # @return [Boolean] whether the fiber is the root of its thread and of a tree of fibers
    def root?(fiber, scheduler)
      fiber.blocking? && TreeNode.root(scheduler).fiber.equal?(fiber)
    end

    # Runs the block in a non-blocking fiber. In a blocking fiber, such as a thread's root, Ruby waits without asking
    # the scheduler, and no other fiber would run. There the block gets a fiber of its own, which has ended when this
    # returns.
    #
    # @return [Object] the block's value
    # @raise the block's error
    def in_nonblocking_fiber
      return yield unless Fiber.current.blocking? && scheduler_if_any

      in_child { yield } # rubocop:disable Style/ExplicitBlockArgument -- must yield in the caller's frame
    end

    # Runs the block in a child of the current fiber, which has ended when this returns.
    #
    # @return [Object] the block's value
    # @raise the block's error
    def in_child
      left = false
      # If something is raised at the end of `spin`, the fiber is there, and this method does not know it.
      fiber = Heddle.spin { yield unless left }
      Heddle.await(fiber)
    ensure
      left = true
      end_helper(fiber) if fiber&.alive?
    end

    # Ends the fiber of {in_child}, after an exception was raised in the waiting fiber.
    def end_helper(fiber)
      Heddle.stop(fiber)
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
