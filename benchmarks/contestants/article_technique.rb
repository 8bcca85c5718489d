# frozen_string_literal: true

require_relative "posix_timer"

# The technique of 'Pre-emptive fiber-based concurrency in MRI Ruby' (2021), ported to today's Async. A timer is armed
# before a fiber runs. When it expires, it sends a signal; the signal's handler queues the fiber again and switches to
# the scheduler.
#
# Two things have changed since. Async used to resume fibers and now transfers to them, so the handler, which used to
# yield, transfers to the scheduler. And io-event transfers to a Fiber in C, which would never call a method that a
# subclass overrides; but it accepts any object that responds like a fiber, so this class wraps its fiber.
#
# It works on the main thread only, and takes SIGUSR2 from the application.
module Article
  SIGNAL = "USR2"

  # Async calls `alive?` and `transfer` only.
  class YieldingFiber
    class << self
      attr_accessor :timer, :running
    end

    def initialize(scheduler, &)
      @scheduler = scheduler
      @fiber = Fiber.new(&)
    end

    def alive? = @fiber.alive?

    def transfer
      YieldingFiber.running = self
      YieldingFiber.timer.arm
      @fiber.transfer
    end

    def current? = Fiber.current.equal?(@fiber)

    def yield_to_scheduler
      @scheduler.push(self)
      @scheduler.transfer
    end
  end

  def self.install(seconds)
    YieldingFiber.timer = PosixTimer.new(SIGNAL, seconds)
    Signal.trap(SIGNAL) do
      running = YieldingFiber.running
      running.yield_to_scheduler if running&.current?
    end
  end
end
