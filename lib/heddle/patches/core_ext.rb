# frozen_string_literal: true

module Heddle # :nodoc:
  # Methods of each Fiber, with `require "heddle/core_ext"`.
  module FiberMethods
    # @see Heddle.schedule
    def schedule(value = nil)
      Heddle.schedule(self, value)
    end

    # @return [Object] the fiber's value
    # @see Heddle.await
    def await
      Heddle.await(self)
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

  # Methods of Fiber itself, with `require "heddle/core_ext"`.
  module FiberClassMethods
    # @see Heddle.await_all
    def await(*fibers)
      Heddle.await_all(*fibers)
    end

    # @see Heddle.select
    def select(*fibers)
      Heddle.select(*fibers)
    end
  end

  # Private methods of every object, with `require "heddle/core_ext"`.
  module KernelMethods
    private

    # @see Heddle.spin
    def spin(...)
      Heddle.spin(...)
    end

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
  private_constant :FiberMethods, :FiberClassMethods, :KernelMethods

  Fiber.include(FiberMethods)
  Fiber.extend(FiberClassMethods)
  Kernel.include(KernelMethods)
end
