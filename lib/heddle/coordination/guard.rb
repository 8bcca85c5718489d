# frozen_string_literal: true

module Heddle
  # A mutex that the coordination classes and the pools use for their own state. It works across threads and schedulers.
  class Guard
    def initialize
      @mutex = Thread::Mutex.new
    end

    # Runs a block that does not wait. Exceptions from other fibers are deferred until its end, so they cannot leave the
    # state half changed.
    #
    # @return [Object] the block's value
    def synchronize(&)
      scheduler = Context.scheduler_if_any
      return @mutex.synchronize(&) unless scheduler

      scheduler.__send__(:defer_raises) { @mutex.synchronize(&) }
    end
  end
  private_constant :Guard
end
