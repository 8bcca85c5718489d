# frozen_string_literal: true

module Heddle # :nodoc:
  class << self
    # Waits for the end of a fiber of this thread, made by {spin} or `Fiber.schedule`.
    #
    # If the calling fiber is itself stopped while it waits, the awaited fiber continues.
    #
    # @param fiber [Fiber] a fiber of {spin} may have ended already
    # @return [Object] the value of its block; nil for a fiber that was stopped
    # @raise the error that ends it
    # @raise [FiberError] for the calling fiber, a fiber of another thread, a dead fiber that {spin} did not make, or
    #   one that waits in {Scheduler#close} or {Scheduler#run} until all others have ended
    # @raise [TypeError] for an argument that is not a Fiber
    # @raise [RuntimeError] if the thread has no Heddle::Scheduler
    # @example
    #   Heddle.run { Heddle.await(Heddle.spin { :weft }) } # => :weft
    def await(fiber)
      await_tasks([fiber], "Heddle.await").first
    end

    # Waits for the end of several fibers, as {await} does for one.
    #
    # @param fibers [Array<Fiber>] as {await} takes them
    # @return [Array<Object>] the values of their blocks, in the order of the arguments
    # @raise the first error that ends one of them. The others are stopped first, and have ended when it is raised.
    # @raise [FiberError, TypeError, RuntimeError] (see await)
    # @example
    #   Heddle.run { Heddle.await_all(Heddle.spin { :warp }, Heddle.spin { :weft }) } # => [:warp, :weft]
    def await_all(*fibers)
      await_tasks(fibers, "Heddle.await_all")
    end

    # Waits until the first of several fibers ends. The others continue. The name is Polyphony's.
    #
    # @param fibers [Array<Fiber>] as {await} takes them
    # @return [Fiber] the fiber that ended first; {await} returns its value
    # @raise the error of the fiber that ended first, if an error ended it
    # @raise [ArgumentError] without fibers
    # @raise [FiberError, TypeError] (see await)
    # @example Take the faster one
    #   Heddle.run do
    #     hare, tortoise = [0.1, 0.2].map { |time| Heddle.spin { sleep time } }
    #     Heddle.select(hare, tortoise) == hare # => true
    #   end
    def select(*fibers)
      raise ArgumentError, "Heddle.select needs at least one fiber" if fibers.empty?

      _, wait = wait_for_fibers(fibers, "Heddle.select")
      wait.until(&:first)
      wait.propagate_all_but(wait.first)
      wait.first.error ? raise(wait.first.error) : wait.first.fiber
    end

    private

    def await_tasks(fibers, method)
      tasks, wait = wait_for_fibers(fibers, method)
      wait.until { wait.failed || wait.all? }
      return tasks.map(&:value) unless (failed = wait.failed)

      wait.stop_rest
      raise failed.error
    end

    # @return [Array(Array<Task>, TaskWait)]
    def wait_for_fibers(fibers, method)
      scheduler = Context.scheduler(method)
      tasks = fibers.map { |fiber| Context.task_to_await(fiber, scheduler, method) }
      [tasks, TaskWait.new(scheduler, Task.current(scheduler), tasks)]
    end
  end
end
