# frozen_string_literal: true

module Heddle
  # Lets so many in at a time. From any thread and scheduler. Who asks first gets in first: nobody overtakes who waits.
  #
  # For one at a time Ruby's Mutex does; it is not fair, and only who has locked it can unlock it.
  #
  # @example At most ten requests at a time
  #   semaphore = Heddle::Semaphore.new(10)
  #   urls.each { |url| Heddle.spin { semaphore.acquire { fetch(url) } } }
  class Semaphore
    # @param permits [Integer] how many get in at a time
    # @raise [ArgumentError, TypeError] if it is less than one, or no Integer
    def initialize(permits = 1)
      @available = Checks.count(permits, "Heddle::Semaphore.new")
      @guard = Guard.new
      @waiters = []
    end

    # @return [Integer] how many could get in now
    attr_reader :available

    # @return [Integer] how many wait to get in
    def waiting
      @waiters.size
    end

    # Waits until there is room. With a block, leaves after it.
    #
    # @param timeout [Numeric, nil] seconds; nil is for ever
    # @yield what is to be done inside
    # @return [Object, Boolean] the block's value; without a block true. If the time was up, nil or false.
    # @raise [ArgumentError, TypeError] for a time that is negative, infinite, or no number
    def acquire(timeout: nil)
      Checks.seconds(timeout, "Heddle::Semaphore#acquire") if timeout
      entered = enter(timeout)
      return entered unless block_given?
      return unless entered

      begin
        yield
      ensure
        release
      end
    end

    # @return [Boolean] whether there was room, and nobody waited for it
    def try_acquire
      @guard.synchronize { take }
    end

    # Leaves. Any fiber of any thread may, for whoever got in.
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

    def enter(timeout)
      waiter = take_or_wait
      return true unless waiter

      entered = waiter.wait(timeout)
    ensure
      # Who gives up may have been let in at the same moment.
      @guard.synchronize { @waiters.delete(waiter) || pass_on } if waiter && !entered
    end

    # @return [Waiter, nil] nil if there was room
    def take_or_wait
      @guard.synchronize { Waiter.new.tap { |waiter| @waiters << waiter } unless take }
    end

    def take # rubocop:disable Naming/PredicateMethod -- it does take
      return false unless @available.positive? && @waiters.empty?

      @available -= 1
      true
    end

    # The place goes to who has waited longest, without being free in between.
    def pass_on
      if (waiter = @waiters.shift)
        waiter.wake
      else
        @available += 1
      end
    end
  end
end
