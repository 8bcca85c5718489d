# frozen_string_literal: true

module Heddle
  # Counts what is under way, and lets others wait until nothing is. From any thread and scheduler.
  #
  # For a fixed number that only goes down, concurrent-ruby's CountDownLatch does the same.
  #
  # @example
  #   group = Heddle::WaitGroup.new
  #   urls.each { |url| group.add; Fiber.schedule { fetch(url) ensure group.done } }
  #   group.wait
  class WaitGroup
    # @param count [Integer] how many are under way from the beginning
    # @raise [ArgumentError, TypeError] if it is negative, or no Integer
    def initialize(count = 0)
      @count = Checks.count(count, "Heddle::WaitGroup.new", least: 0)
      @guard = Guard.new
      @waiters = []
    end

    # @return [Integer] how many are under way
    attr_reader :count

    # @param number [Integer] so many more are under way
    # @return [self]
    # @raise [ArgumentError, TypeError] if it is less than one, or no Integer
    def add(number = 1)
      Checks.count(number, "Heddle::WaitGroup#add")
      @guard.synchronize { @count += number }
      self
    end

    # One of them is done.
    #
    # @return [self]
    # @raise [ThreadError] if none is under way
    def done
      @guard.synchronize do
        if @count.zero?
          raise ThreadError,
                "Heddle::WaitGroup#done: nothing is under way; call add before the work begins"
        end

        @count -= 1
        @waiters.each(&:wake).clear if @count.zero?
      end
      self
    end

    # Waits until nothing is under way.
    #
    # @param timeout [Numeric, nil] seconds; nil is for ever
    # @return [Boolean] false if the time was up
    # @raise [ArgumentError, TypeError] for a time that is negative, infinite, or no number
    def wait(timeout: nil)
      Checks.seconds(timeout, "Heddle::WaitGroup#wait") if timeout
      waiter = Waiter.new
      @guard.synchronize do
        return true if @count.zero?

        @waiters << waiter
      end
      waiter.wait(timeout)
    ensure
      @guard.synchronize { @waiters.delete(waiter) } if waiter
    end

    # @return [String]
    def inspect
      "#<#{self.class} count=#{@count}>"
    end
  end
end
