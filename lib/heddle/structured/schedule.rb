# frozen_string_literal: true

module Heddle # :nodoc:
  class << self
    # Waits until another fiber passes this one a value by {schedule}. Values that were passed before are returned
    # first, in order. The name is Polyphony's.
    #
    # @return [Object] the value
    # @raise the exception, if {schedule} was called with one
    # @raise [RuntimeError] if the thread has no Heddle::Scheduler
    # @example
    #   lazy = Heddle.spin { loop { puts Heddle.suspend } }
    #   Heddle.schedule(lazy, "a message")
    def suspend
      Native.suspend(Context.scheduler("Heddle.suspend"))
    end

    # Passes a value to a fiber, and wakes the fiber if it waits in {suspend}. Otherwise the value stays in a queue
    # until the fiber's next {suspend}. Several nils in that queue count as one. The name is Polyphony's.
    #
    # An exception is raised in the fiber instead, whatever the fiber waits for.
    #
    # @param fiber [Fiber] a fiber of this thread, made by {spin} or `Fiber.schedule`
    # @param value [Object, Exception]
    # @return [Fiber] the fiber
    # @raise [FiberError] for a dead fiber, the calling fiber, or a fiber of another thread
    # @raise [TypeError] for an argument that is not a Fiber
    # @example (see suspend)
    def schedule(fiber, value = nil)
      ArgumentChecks.fiber(fiber, "Heddle.schedule")
      refuse_schedule(fiber, "can't schedule itself") if fiber.equal?(Fiber.current)
      scheduler = Context.scheduler("Heddle.schedule")
      unless fiber.alive?
        # If this fiber has been stopped, it ends here, rather than by the FiberError.
        Native.raise_deferred(scheduler)
        refuse_schedule(fiber, "is dead")
      end
      known = value.is_a?(Exception) ? Native.deliver(scheduler, fiber, value) : Native.post(scheduler, fiber, value)
      return fiber if known || ended?(fiber)

      refuse_schedule(fiber, "was not made by Heddle.spin or Fiber.schedule on this thread")
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
      Native.state(fiber)
    end

    private

    # Whether the fiber has ended while the calling fiber was preempted, or has been abandoned.
    def ended?(fiber)
      !fiber.alive? || Task.of(fiber)&.ended?
    end

    def refuse_schedule(fiber, reason)
      raise FiberError, "Heddle.schedule: #{fiber.inspect} #{reason}"
    end
  end
end
