# frozen_string_literal: true

require "heddle"

# With `require "heddle/core_ext"`, the methods of {Heddle} under the names that Polyphony gives them: methods of Fiber
# and private methods of every object. `require "heddle"` alone does not add them. As in Polyphony, the main fiber may
# call all of them: on a thread without a scheduler, the first call sets one.
#
# @example
#   require "heddle/core_ext"
#
#   clock = spin { every(1.0) { puts Time.now } }
#   after(10.0) { clock.terminate }
#   clock.await
unless defined?(Polyphony)
  # The name under which Polyphony's programs rescue cancellation.
  module Polyphony
    # What `cancel_after` raises.
    Cancel = Heddle::TimeoutError
  end
end

module Heddle # :nodoc:
  # Methods of each Fiber, with `require "heddle/core_ext"`.
  module FiberMethods
    # @see Heddle.schedule
    def schedule(value = nil) = Heddle.schedule(self, value)

    # @return [Object] the fiber's value
    # @see Heddle.await
    def await = Heddle.await(self)

    # @see Heddle.terminate
    def terminate = Heddle.terminate(self)

    # @see Heddle.state
    def state = Heddle.state(self)
  end

  # Methods of Fiber itself, with `require "heddle/core_ext"`.
  module FiberClassMethods
    # @see Heddle.await_all
    def await(*fibers) = Heddle.await_all(*fibers)

    # @see Heddle.select
    def select(*fibers) = Heddle.select(*fibers)
  end

  # Private methods of every object, with `require "heddle/core_ext"`.
  module KernelMethods
    private

    # @see Heddle.spin
    def spin(...) = Heddle.spin(...)

    # @see Heddle.snooze
    def snooze
      Context.scheduler_or_new("Heddle.snooze")
      Heddle.snooze
    end

    # @see Heddle.suspend
    def suspend
      Context.scheduler_or_new("Heddle.suspend")
      Heddle.suspend
    end

    # @see Heddle.every
    def every(...)
      Context.scheduler_or_new("Heddle.every")
      Heddle.every(...)
    end

    # @see Heddle.after
    def after(...)
      Context.scheduler_or_new("Heddle.after")
      Heddle.after(...)
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
