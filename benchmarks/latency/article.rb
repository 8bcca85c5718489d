# frozen_string_literal: true

require_relative "timer"

# The technique of 'Pre-emptive fiber-based concurrency in MRI Ruby' (2021), carried over to today's Async: before a
# fiber gets its turn a timer is armed; when it expires, a signal comes, and the signal's handler queues the fiber again
# and hands the turn to the scheduler.
#
# What had to change since: Async transfers to fibers, where it used to resume them, so the handler transfers to the
# scheduler, where it used to yield. io-event transfers to a Fiber in C and would never call a method that a subclass
# overrides; but it takes anything that looks like a fiber, so this one wraps its fiber.
#
# It works on the main thread only, and takes the application's SIGUSR2.
module Article
  SIGNAL = "USR2"

  # Async knows it by `alive?` and `transfer` alone.
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
    YieldingFiber.timer = Timer.new(SIGNAL, seconds)
    Signal.trap(SIGNAL) do
      running = YieldingFiber.running
      running.yield_to_scheduler if running&.current?
    end
  end
end
