# frozen_string_literal: true

require "heddle"

# With `require "heddle/core_ext"`, the methods of {Heddle} under the names that Polyphony gives them: methods of Fiber
# and private methods of every object. `require "heddle"` alone does not add them. As in Polyphony, the main fiber may
# call all of them: on a thread without a scheduler, the first call sets one. And as in Polyphony, children end with
# their parent: `spin` and `after` start fibers in the background.
#
# @example
#   require "heddle/core_ext"
#
#   clock = spin { every(1.0) { puts Time.now } }
#   after(10.0) { clock.terminate }
#   clock.await
unless Heddle.supported?
  # Where Heddle's extension is missing, each of its methods says so.
  module Kernel
    %i[spin snooze suspend every after cancel_after move_on_after].each do |name|
      private(define_method(name) { |*, **| raise Heddle.const_get(:Extension).error(name) })
    end
  end
  return
end

unless defined?(Polyphony)
  # The name under which Polyphony's programs rescue cancellation.
  module Polyphony
    # What `cancel_after` raises.
    Cancel = Heddle::TimeoutError
  end
end

module Heddle # :nodoc:
  # In this file only.
  module Context
    # @raise [FiberError]
    def self.refuse_schedule(fiber, reason) = raise(FiberError, "Fiber#schedule: #{fiber.inspect} #{reason}")
  end

  # Methods of each Fiber, with `require "heddle/core_ext"`.
  module FiberMethods
    # Passes a value to the fiber, and wakes the fiber if it waits in `suspend`. Otherwise the value stays in a queue
    # until the fiber's next `suspend`. Several nils in that queue count as one.
    #
    # An exception is raised in the fiber instead, whatever the fiber waits for.
    #
    # @param value [Object, Exception]
    # @return [self]
    # @raise [FiberError] for a dead fiber, the calling fiber, or a fiber of another thread
    # @example
    #   lazy = spin { loop { puts suspend } }
    #   lazy.schedule("a message")
    def schedule(value = nil)
      Context.refuse_schedule(self, "can't schedule itself") if equal?(Fiber.current)
      scheduler = Context.scheduler("Fiber#schedule")
      # If the calling fiber has been stopped, it ends here, rather than by the FiberError.
      Native.raise_deferred(scheduler) unless alive?
      Context.refuse_schedule(self, "is dead") unless alive?
      known = value.is_a?(Exception) ? Native.deliver(scheduler, self, value) : Native.post(scheduler, self, value)
      Context.refuse_schedule(self, "was not made by spin or Fiber.schedule on this thread") if !known && alive?
      self
    end

    # @return [Object] the fiber's value
    # @see Heddle.await
    def await = Heddle.await(self)

    # @see Heddle.stop
    def terminate = Heddle.stop(self)

    # @see Heddle.state
    def state = Heddle.state(self)
  end

  # Methods of Fiber itself, with `require "heddle/core_ext"`.
  module FiberClassMethods
    # @see Heddle.await_all
    def await(*fibers) = Heddle.await_all(*fibers)

    # Waits until the first of several fibers ends. The others continue.
    #
    # @param fibers [Array<Fiber>] as {Heddle.await} takes them
    # @return [Fiber] the fiber that ended first; `await` returns its value
    # @raise the error of the fiber that ended first, if an error ended it
    # @raise [ArgumentError] without fibers
    # @raise [FiberError, TypeError] (see Heddle.await)
    # @example Take the faster one
    #   hare, tortoise = [0.1, 0.2].map { |time| spin { sleep time } }
    #   Fiber.select(hare, tortoise) == hare # => true
    def select(*fibers)
      ::Kernel.raise ArgumentError, "Fiber.select needs at least one fiber" if fibers.empty?

      Heddle.without_preemption do
        _, wait = Heddle.__send__(:wait_for_fibers, fibers, "Fiber.select")
        wait.until(&:first)
        wait.unclaim_all_but(wait.first)
        wait.first.error ? ::Kernel.raise(wait.first.error) : wait.first.fiber
      end
    end
  end

  # Private methods of every object, with `require "heddle/core_ext"`.
  module KernelMethods
    private

    # In the background: the fiber is stopped at its parent's end.
    #
    # @see Heddle.spin
    def spin(*, name: nil, &)
      Context.scheduler_or_new("spin")
      Heddle.spin(*, name:, background: true, &)
    end

    # @see Heddle.snooze
    def snooze
      Context.scheduler_or_new("Heddle.snooze")
      Heddle.snooze
    end

    # Waits until another fiber passes this one a value by {FiberMethods#schedule}. Values that were passed before are
    # returned first, in order.
    #
    # @return [Object] the value
    # @raise the exception, if it was one
    def suspend
      Native.suspend(Context.scheduler_or_new("suspend"))
    end

    # @see Heddle.every
    def every(...)
      Context.scheduler_or_new("Heddle.every")
      Heddle.every(...)
    end

    # In the background, as {spin}.
    #
    # @see Heddle.after
    def after(delay, name: nil, &)
      Context.scheduler_or_new("Heddle.after")
      Heddle.after(delay, name:, background: true, &)
    end

    # @see Heddle.cancel_after
    def cancel_after(...)
      Context.scheduler_or_new("Heddle.cancel_after")
      Heddle.cancel_after(...)
    end

    # @see Heddle.move_on_after
    def move_on_after(...)
      Context.scheduler_or_new("Heddle.move_on_after")
      Heddle.move_on_after(...)
    end
  end

  # Lets other fibers run while a thread's root fiber sleeps, with `require "heddle/core_ext"`. In a root fiber Ruby
  # sleeps without asking the scheduler. Once the root has spun fibers, these run in the meantime, as in Polyphony.
  module RootSleep
    private

    # Waits; see Ruby's documentation.
    def sleep(*)
      scheduler = Fiber.scheduler
      return super unless scheduler.is_a?(Scheduler) && Context.root?(Fiber.current, scheduler)

      started = Context.now
      scheduler.kernel_sleep(*)
      (Context.now - started).round
    end
  end

  # The same for `Kernel.sleep`.
  module PublicRootSleep
    include RootSleep

    public :sleep
  end
  private_constant :FiberMethods, :FiberClassMethods, :KernelMethods, :RootSleep, :PublicRootSleep

  Fiber.include(FiberMethods)
  Fiber.extend(FiberClassMethods)
  Kernel.include(KernelMethods)
  Kernel.prepend(RootSleep)
  Kernel.singleton_class.prepend(PublicRootSleep)
end
