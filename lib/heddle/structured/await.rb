# frozen_string_literal: true

module Heddle # :nodoc:
  class << self
    # Waits for the end of a fiber of this thread, made by {spin} or `Fiber.schedule`.
    #
    # If the calling fiber is itself stopped while it waits, the awaited fiber continues.
    #
    # @param fiber [Fiber] a {Task} may have ended already
    # @return [Object] the value of its block; nil for a fiber that was stopped
    # @raise the error that ends it. The fiber's parent does not get the error then.
    # @raise [FiberError] for the calling fiber, a fiber that waits at its own end for the calling one, a fiber of
    #   another thread, a dead fiber that {spin} did not make, or one that waits in {Scheduler#close} or
    #   {Scheduler#run} until all others have ended
    # @raise [TypeError] for an argument that is not a Fiber
    # @raise [RuntimeError] if the thread has no Heddle::Scheduler
    # @example
    #   Heddle.run { Heddle.await(Fiber.schedule { sleep 0.1; :weft }) } # => :weft
    def await(fiber)
      await_fibers([fiber], "Heddle.await").first
    end

    # Waits for the end of several fibers, as {await} does for one.
    #
    # @param fibers [Array<Fiber>] as {await} takes them
    # @return [Array<Object>] the values of their blocks, in the order of the arguments
    # @raise the first error that ends one of them. Those of the others that are children of the calling fiber are
    #   stopped first, and have ended when it is raised.
    # @raise [FiberError, TypeError, RuntimeError] (see await)
    # @example
    #   Heddle.run { Heddle.await_all(Heddle.spin { :warp }, Heddle.spin { :weft }) } # => [:warp, :weft]
    def await_all(*fibers)
      await_fibers(fibers, "Heddle.await_all")
    end

    # Tells what a fiber does at the moment.
    #
    # @param fiber [Fiber] of any thread
    # @return [:running, :runnable, :waiting, :dead] `:runnable` for a fiber in the run queue
    # @raise [TypeError] for an argument that is not a Fiber
    # @example
    #   Heddle.run { Heddle.state(Heddle.spin { }) } # => :runnable
    def state(fiber)
      ArgumentChecks.fiber(fiber, "Heddle.state")
      TreeNode.of(fiber)&.left_in_parent? ? :dead : Native.state(fiber)
    end

    private

    def await_fibers(fibers, method)
      without_preemption do
        nodes, wait = wait_for_fibers(fibers, method)
        wait.until { wait.failed || wait.all? }
        next nodes.map(&:value) unless (failed = wait.failed)

        wait.stop_rest
        raise failed.error
      end
    end

    # @return [Array(Array<TreeNode>, TaskWait)]
    def wait_for_fibers(fibers, method)
      scheduler = Context.scheduler(method)
      nodes = fibers.map { |fiber| Context.node_to_await(fiber, scheduler, method) }
      [nodes, TaskWait.new(scheduler, TreeNode.current(scheduler), nodes)]
    end
  end
end
