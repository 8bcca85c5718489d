# frozen_string_literal: true

module Heddle
  # What the classes that coordinate fibers and threads are built on: Ruby's own Mutex and Queue, which wake across
  # threads and schedulers.
  class Guard
    def initialize
      @mutex = Thread::Mutex.new
    end

    # Nobody else is in. Nothing is waited for in the block, and nobody who is cancelled leaves it half done.
    def synchronize(&)
      scheduler = Structure.scheduler_if_any
      return @mutex.synchronize(&) unless scheduler

      scheduler.__send__(:hold_back) { @mutex.synchronize(&) }
    end
  end
  private_constant :Guard

  # One fiber, or one thread, that waits to be woken; once.
  class Waiter
    def initialize
      @gate = Thread::Queue.new
    end

    def wake
      @gate.close
    end

    # @param seconds [Numeric, nil]
    # @return [Boolean] whether it has been woken; else the time was up
    def wait(seconds = nil) # rubocop:disable Naming/PredicateMethod -- it does wait
      Structure.in_nonblocking_fiber { @gate.pop(timeout: seconds) }
      @gate.closed?
    end
  end
  private_constant :Waiter
end
