# frozen_string_literal: true

module Heddle
  # Waits of fibers and threads, all of which end with one wake-up from any thread. It is built on Ruby's Queue, which
  # wakes across threads and schedulers.
  class Waiter
    # @param seconds [Numeric, nil] nil is for ever
    # @return [Float, nil] the time at which so many seconds will have passed, for {#wait_until}
    def self.due(seconds)
      seconds && (Context.now + seconds)
    end

    def initialize
      @queue = Thread::Queue.new
    end

    # Ends the waits, and those that begin later.
    def wake
      @queue.close
    end

    # @param seconds [Numeric, nil] nil is for ever
    # @return [Boolean] true after a wake-up, false after a timeout
    def wait(seconds = nil) # rubocop:disable Naming/PredicateMethod -- it is an action
      Context.in_nonblocking_fiber { @queue.pop(timeout: seconds) }
      @queue.closed?
    end

    # @param due [Float, nil] a time; nil is for ever
    # @return [Boolean] see {#wait}
    def wait_until(due)
      wait(due && [due - Context.now, 0].max)
    end
  end
  private_constant :Waiter
end
