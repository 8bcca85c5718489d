# frozen_string_literal: true

module Heddle # :nodoc:
  class << self
    # Makes a fiber that runs the block when its turn comes. (`Fiber.schedule` runs it at once.)
    #
    # The new fiber is a child of the one that calls: when that ends, the child is told to end, too, and an error that
    # the child doesn't handle is raised in its parent, wherever that waits.
    #
    # A thread that has no scheduler gets one with its first fiber.
    #
    # @param arguments [Array] what the block is given
    # @return [Fiber]
    # @raise [ArgumentError] without a block
    # @raise [RuntimeError] if the thread has a scheduler that is not Heddle's
    # @example
    #   Heddle.run do
    #     fibers = [1, 2].map { |n| Heddle.spin { sleep n; n } }
    #     Heddle.await(*fibers)
    #   end # => [1, 2], after two seconds
    def spin(*, &block)
      Checks.block(block, "Heddle.spin")
      scheduler = Structure.scheduler
      Task.new(scheduler, parent: Task.current(scheduler)).start(*, &block)
    end

    # Waits for the end of fibers that have been spun (or scheduled, by `Fiber.schedule`) on this thread. One that was
    # told to end has the value nil. Who is told to end while it awaits others leaves those alone.
    #
    # @param fibers [Array<Fiber>] spun ones may have ended
    # @return [Array] their values, in the order of the arguments
    # @raise the first error of any of them, when the others have been told to end and have done so
    # @raise [FiberError] for the fiber that calls, one of another thread, one that ended without being known
    # @raise [TypeError] for what is no fiber
    # @example
    #   Heddle.run { Heddle.await(Heddle.spin { :warp }, Heddle.spin { :weft }) } # => [:warp, :weft]
    def await(*fibers)
      tasks, await = setup_await(fibers, "Heddle.await")
      await.until { await.failed || await.all? }
      return tasks.map(&:value) unless (failed = await.failed)

      await.stop_rest
      raise failed.error
    end

    # Waits until the first of some fibers ends. The others go on.
    #
    # @param fibers [Array<Fiber>] as {await} takes them
    # @return [Fiber] who ended first; {await} has its value
    # @raise its error, if that is how it ended
    # @raise (see await)
    # @raise [ArgumentError] without fibers
    # @example Who is faster
    #   Heddle.run do
    #     hare, tortoise = [0.1, 0.2].map { |time| Heddle.spin { sleep time } }
    #     Heddle.select(hare, tortoise) == hare # => true
    #   end
    def select(*fibers)
      raise ArgumentError, "Heddle.select needs a fiber at least" if fibers.empty?

      _, await = setup_await(fibers, "Heddle.select")
      await.until(&:first)
      await.hand_up_but(await.first)
      await.first.error ? raise(await.first.error) : await.first.fiber
    end

    # Gives the others a turn.
    #
    # @return [nil]
    # @example
    #   Heddle.snooze until finished?
    def snooze
      Structure.scheduler.yield
      nil
    end

    # Waits until another fiber schedules this one. What it has been scheduled with before, and not yet got, comes
    # first.
    #
    # @return [Object] the resume value
    # @raise the exception, if it was scheduled with one
    # @example
    #   lazy = Heddle.spin { loop { puts Heddle.suspend } }
    #   Heddle.schedule(lazy, "a message")
    def suspend
      Structure.scheduler.__send__(:suspend)
    end

    # Lets a fiber go on that is suspended, with a value. It does when its turn comes. A fiber that isn't suspended
    # finds the value at its next {suspend}; values wait in order, and nils that nobody has taken are one.
    #
    # An exception is raised in the fiber, whatever it waits for.
    #
    # @param fiber [Fiber] one of this thread's
    # @param value [Object, Exception]
    # @return [Fiber] the fiber
    # @raise [FiberError] for a dead fiber, the one that calls, one of another thread
    # @raise [TypeError] for what is no fiber
    # @example (see suspend)
    def schedule(fiber, value = nil)
      Checks.fiber(fiber, "Heddle.schedule")
      refuse_schedule(fiber, "can't schedule itself") if fiber.equal?(Fiber.current)
      scheduler = Structure.scheduler
      unless fiber.alive?
        # Who has been told to end as well needs no other reason.
        scheduler.__send__(:check)
        refuse_schedule(fiber, "is dead")
      end
      known = scheduler.__send__(value.is_a?(Exception) ? :deliver : :post, fiber, value)
      refuse_schedule(fiber, "is not one that this thread has spun or scheduled") unless known || ended?(fiber)
      fiber
    end

    # Tells a fiber to end. What it waits for is ended, its `ensure` clauses run, and its value is nil. To tell it a
    # second time changes nothing. Doesn't wait for the end: {await} does.
    #
    # The `ensure` clauses, and a `rescue Exception`, may wait. But a fiber that swallows its end is told again at its
    # next wait, and one that has not ended when its time is up (see `grace:` of {Scheduler#initialize}) is abandoned.
    #
    # @param fiber [Fiber] one of this thread's, perhaps the one that calls; one that has ended is left alone
    # @return [Fiber] the fiber
    # @raise [FiberError] for a root fiber, one of another thread, one that neither has been spun nor scheduled
    # @raise [TypeError] for what is no fiber
    # @example
    #   clock = Heddle.spin { Heddle.every(1) { puts Time.now } }
    #   Heddle.terminate(clock)
    def terminate(fiber)
      Checks.fiber(fiber, "Heddle.terminate")
      return fiber unless fiber.alive?
      raise FiberError, "Heddle.terminate: #{fiber.inspect} is a blocking fiber, as a thread's root is one" if
        fiber.blocking?

      scheduler = Structure.scheduler
      unless scheduler.__send__(:stop, fiber) || ended?(fiber)
        raise FiberError, "Heddle.terminate: #{fiber.inspect} is not one that this thread has spun or scheduled"
      end

      scheduler.__send__(:check) if fiber.equal?(Fiber.current)
      fiber
    end

    # @param fiber [Fiber] of any thread
    # @return [:running, :runnable, :waiting, :dead] `:running` for who has the turn, `:runnable` for who waits for
    #   nothing but its turn
    # @raise [TypeError] for what is no fiber
    # @example
    #   Heddle.run { Heddle.state(Heddle.spin { }) } # => :runnable
    def state(fiber)
      Checks.fiber(fiber, "Heddle.state")
      Scheduler.__send__(:state, fiber)
    end

    private

    def setup_await(fibers, method)
      scheduler = Structure.scheduler
      tasks = fibers.map { |fiber| Structure.awaited(fiber, scheduler, method) }
      [tasks, Await.new(scheduler, Task.current(scheduler), tasks)]
    end

    # Whether it has ended while this fiber was preempted, or has been abandoned.
    def ended?(fiber)
      !fiber.alive? || Task.of(fiber)&.ended?
    end

    def refuse_schedule(fiber, reason)
      raise FiberError, "Heddle.schedule: #{fiber.inspect} #{reason}"
    end
  end
end
