# frozen_string_literal: true

module Heddle # :nodoc:
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
  private_constant :RootSleep, :PublicRootSleep

  Kernel.prepend(RootSleep)
  Kernel.singleton_class.prepend(PublicRootSleep)
end
