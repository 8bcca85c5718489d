# frozen_string_literal: true

module Heddle
  # Finds the fibers that hold Mutexes. Ruby 3.3 and 3.4 store the fiber in the Mutex; later Rubies do not, so there the
  # holder is not found.
  class MutexHolders
    # @param fibers [Array<Fiber>] the fibers that may hold one
    def initialize(fibers)
      @fibers = fibers
    end

    # @param mutex [Object]
    # @return [Fiber, nil] nil for another object, and for a Mutex that none of the fibers is known to hold
    def of(mutex)
      address = Scheduler.__send__(:holder_address, mutex)
      by_address[address] if address
    end

    private

    def by_address
      @by_address ||= @fibers.to_h { |fiber| [Scheduler.__send__(:fiber_address, fiber), fiber] }
    end
  end
  private_constant :MutexHolders
end
