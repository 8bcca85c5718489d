# frozen_string_literal: true

require_relative "clock"

# Fibers that use the CPU. Programs in a Ruby of their own require this file, too: it needs nothing but Heddle.
module Computing
  PATH = __FILE__

  module_function

  # Keeps the CPU busy for so many seconds of wall-clock time.
  def compute_for(seconds)
    finish = Clock.now + seconds
    Integer.sqrt(2) until Clock.now > finish
  end

  # Starts a fiber that computes until it has been preempted, and returns after its end.
  def preempt_a_fiber
    done = false
    # The fiber begins at once. The next line is reached only through a preemption.
    fiber = YieldingFiber.schedule { nil until done }
    done = true
    sleep(0) while fiber.alive?
  end
end
