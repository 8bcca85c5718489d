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
      @limit = @available = ArgumentChecks.count(permits, "Heddle::Semaphore.new")
      @guard = Guard.new
      @waiters = Waiters.new
    end

    # @return [Integer] the number of free permits
    attr_reader :available

    # @return [Integer] the number of fibers and threads that wait for a permit
    def waiting
      @waiters.size
    end

    # Waits for a permit and takes it. With a block, gives it back at the block's end, however that comes: also if the
    # fiber is stopped, or its thread is killed, at the very moment at which it gets the permit. A call without a
    # block cannot promise that for the moment of its own return.
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
      request = Request.new
      return keep_permit(request, timeout) unless block_given?

      begin
        yield if take_permit(request, timeout)
      ensure
        give_back(request)
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
    # A permit that was not taken cannot be given back: from then on more fibers than the limit would run at a time.
    #
    # @return [self]
    # @raise [ThreadError] if no permit is taken
    def release
      @guard.synchronize { pass_on }
      self
    end

    # @return [String]
    def inspect
      "#<#{self.class} available=#{@available} waiting=#{waiting}>"
    end

    private

    def keep_permit(request, timeout)
      kept = take_permit(request, timeout)
    ensure
      give_back(request) unless kept
    end

    def take_permit(request, timeout)
      @guard.synchronize { take ? request.grant : @waiters << request.enqueued }
      request.granted? || request.wait(timeout)
    end

    # The caller may have been given a permit at the moment at which it gave up, or was interrupted.
    def give_back(request)
      @guard.synchronize { request.granted? ? pass_on : @waiters.delete(request) }
    end

    def take # rubocop:disable Naming/PredicateMethod -- it is an action
      return false unless @available.positive? && @waiters.empty?

      @available -= 1
      true
    end

    # Gives the permit to the oldest waiter. It is not free in between, so no other fiber can take it.
    def pass_on
      if (request = @waiters.shift)
        request.grant
      else
        if @available >= @limit
          raise ThreadError, "Heddle::Semaphore#release: no permit is taken (#{@available} of #{@limit} are free)"
        end

        @available += 1
      end
    end

    # A call of {#acquire}. The semaphore's guard protects it.
    class Request
      # @return [Boolean] whether the caller has a permit
      def granted? = @granted || false

      # The caller has to wait.
      def enqueued
        @waiter = Waiter.new
        self
      end

      # Gives the caller a permit.
      def grant
        @granted = true
        @waiter&.wake
      end

      # @return [Boolean] whether the caller has a permit; false after the time limit
      def wait(timeout) = @waiter.wait(timeout)
    end
    private_constant :Request
  end
end
