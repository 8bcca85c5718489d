# frozen_string_literal: true

module Heddle
  # Finds the fibers that hold Mutexes. Ruby 3.3 and 3.4 store the fiber's address in the Mutex, and Ruby 4.0 stores the
  # fiber's number. Both are internals of Ruby, so it is tried once which of them it is. If it is neither, no holder is
  # found.
  class MutexHolders
    # @return [Symbol, nil] the method that returns of a fiber what its Mutexes have
    def self.method_of_ruby
      pairs = Array.new(2) { Thread::Mutex.new }.to_h do |mutex|
        [Fiber.new(blocking: true) { mutex.synchronize { Fiber.yield } }.tap(&:resume), Native.holder_number(mutex)]
      end
      %i[fiber_address fiber_serial].find do |method|
        pairs.all? { |fiber, number| Native.__send__(method, fiber) == number }
      end
    ensure
      pairs&.each_key(&:resume)
    end
    private_class_method :method_of_ruby

    NUMBER = method_of_ruby
    private_constant :NUMBER

    # @param fibers [Array<Fiber>] the fibers that may hold one
    def initialize(fibers)
      @fibers = fibers
    end

    # @param mutex [Object]
    # @return [Fiber, nil] nil for another object, and for a Mutex that none of the fibers is known to hold
    def of(mutex)
      number = NUMBER && Native.holder_number(mutex)
      by_number[number] if number
    end

    private

    def by_number
      @by_number ||= @fibers.to_h { |fiber| [Native.__send__(NUMBER, fiber), fiber] }
    end
  end
  private_constant :MutexHolders
end
