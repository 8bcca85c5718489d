# frozen_string_literal: true

require "heddle"

# What {Heddle} offers, under the names that Polyphony's users know: methods of Fiber and of every object.
#
# @example
#   require "heddle/core_ext"
#
#   clock = spin { every(1) { puts Time.now } }
#   after(10) { clock.terminate }
#   clock.await
module Heddle
  # Methods of each Fiber.
  module FiberMethods
    # @see Heddle.schedule
    def schedule(value = nil)
      Heddle.schedule(self, value)
    end

    # @return [Object] the fiber's value
    # @see Heddle.await
    def await
      Heddle.await(self).first
    end

    # @see Heddle.terminate
    def terminate
      Heddle.terminate(self)
    end

    # @see Heddle.state
    def state
      Heddle.state(self)
    end
  end

  # Methods of Fiber itself.
  module FiberClassMethods
    # @see Heddle.await
    def await(*fibers)
      Heddle.await(*fibers)
    end

    # @see Heddle.select
    def select(*fibers)
      Heddle.select(*fibers)
    end
  end

  # Methods of every object, private as Kernel's are.
  module KernelMethods
    private

    # @see Heddle.spin
    def spin(...)
      Heddle.spin(...)
    end

    # @see Heddle.snooze
    def snooze
      Heddle.snooze
    end

    # @see Heddle.suspend
    def suspend
      Heddle.suspend
    end

    # @see Heddle.every
    def every(...)
      Heddle.every(...)
    end

    # @see Heddle.after
    def after(...)
      Heddle.after(...)
    end

    # @see Heddle.cancel_after
    def cancel_after(...)
      Heddle.cancel_after(...)
    end

    # @see Heddle.move_on_after
    def move_on_after(...)
      Heddle.move_on_after(...)
    end
  end

  # In a thread's root fiber Ruby sleeps without asking the scheduler. Once the root has spun fibers, they have their
  # turns meanwhile, as Polyphony's do.
  module RootSleep
    private

    # Waits; see Ruby's documentation.
    def sleep(*)
      scheduler = Fiber.scheduler
      return super unless scheduler.is_a?(Scheduler) && Structure.root?(Fiber.current, scheduler)

      started = Structure.now
      scheduler.kernel_sleep(*)
      (Structure.now - started).round
    end
  end

  # The same as `Kernel.sleep`.
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

unless defined?(Polyphony)
  # The names by which Polyphony's programs rescue what ends their waits.
  module Polyphony
    # What `cancel_after` raises.
    Cancel = Heddle::Cancelled
  end
end
