# frozen_string_literal: true

module Heddle
  # Limits how many fibers or threads do something at a time. Any thread may use it, with any scheduler or none. It is
  # fair: permits go to waiting fibers and threads in the order in which they asked.
  #
  # For a limit of one, Ruby's Mutex does. It is not fair, and only its owner can unlock it.
  #
  # @example At most ten requests at a time
  #   semaphore = Heddle::Semaphore.new(10)
  #   urls.each { |url| Heddle.spin { semaphore.acquire { fetch(url) } } }
  class Semaphore
    # @param permits [Integer] the limit
    # @raise [ArgumentError] if the number is less than one
    # @raise [TypeError] if the number is not an Integer
    def initialize(permits = 1)
      @available = ArgumentChecks.count(permits, "Heddle::Semaphore.new")
      @guard = Guard.new
      @waiters = []
    end

    # @return [Integer] the number of free permits
    attr_reader :available

    # @return [Integer] the number of fibers and threads that wait for a permit
    def waiting
      @waiters.size
    end

    # Waits for a permit and takes it. With a block, gives it back at the block's end.
    #
    # @param timeout [Float, Integer, Rational, nil] seconds; nil is for ever
    # @yield what needs the permit
    # @return [Object, nil] with a block, the block's value; nil after the timeout
    # @return [Boolean] without a block, true; false after the timeout
    # @raise [ArgumentError] for a timeout that is negative, infinite or NaN
    # @raise [TypeError] for a timeout that is not a number
    # @example
    #   semaphore.acquire(timeout: 1.0) { fetch(url) }
    def acquire(timeout: nil)
      ArgumentChecks.seconds(timeout, "Heddle::Semaphore#acquire") if timeout
      acquired = take_permit(timeout)
      return acquired unless block_given?
      return unless acquired

      begin
        yield
      ensure
        release
      end
    end

    # Takes a permit if one is free, without waiting.
    #
    # @return [Boolean] whether it took one. False, too, while others wait: no call overtakes them.
    def try_acquire
      @guard.synchronize { take }
    end

    # Gives a permit back. Any fiber of any thread may do so for another one.
    #
    # @return [self]
    def release
      @guard.synchronize { pass_on }
      self
    end

    # @return [String]
    def inspect
      "#<#{self.class} available=#{@available} waiting=#{waiting}>"
    end

    private

    def take_permit(timeout)
      waiter = take_or_enqueue
      return true unless waiter

      acquired = waiter.wait(timeout)
    ensure
      # A waiter that gives up may have been given a permit at the same moment: the next one gets it.
      @guard.synchronize { @waiters.delete(waiter) || pass_on } if waiter && !acquired
    end

    # @return [Waiter, nil] nil if a permit was free
    def take_or_enqueue
      @guard.synchronize { Waiter.new.tap { |waiter| @waiters << waiter } unless take }
    end

    def take # rubocop:disable Naming/PredicateMethod -- it is an action
      return false unless @available.positive? && @waiters.empty?

      @available -= 1
      true
    end

    # Gives the permit to the oldest waiter. It is not free in between, so no other fiber can take it.
    def pass_on
      if (waiter = @waiters.shift)
        waiter.wake
      else
        @available += 1
      end
    end
  end
end
