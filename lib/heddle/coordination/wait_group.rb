# frozen_string_literal: true

module Heddle
  # Counts pieces of work, and waits until all of them are done. Any thread may use it, with any scheduler or none. The
  # idea is that of Go's `sync.WaitGroup`.
  #
  # For a fixed number that only decreases, concurrent-ruby's CountDownLatch does the same.
  #
  # @example
  #   group = Heddle::WaitGroup.new
  #   urls.each { |url| group.go { fetch(url) } }
  #   group.wait
  # @example Work that is no fiber
  #   group.add
  #   Thread.new do
  #     fetch(url)
  #   ensure
  #     group.done
  #   end
  #   group.wait
  class WaitGroup
    # @param count [Integer] the initial number of pieces of work
    # @raise [ArgumentError] if the number is negative
    # @raise [TypeError] if the number is not an Integer
    def initialize(count = 0)
      @count = ArgumentChecks.count(count, "Heddle::WaitGroup.new", 0..)
      @guard = Guard.new
    end

    # @return [Integer] the number of pieces of work that are not done
    attr_reader :count

    # Adds pieces of work. Call it before the work starts.
    #
    # @param number [Integer]
    # @return [self]
    # @raise [ArgumentError] if the number is less than one
    # @raise [TypeError] if the number is not an Integer
    def add(number = 1)
      ArgumentChecks.count(number, "Heddle::WaitGroup#add")
      @guard.synchronize { @count += number }
      self
    end

    # Marks one piece of work as done.
    #
    # @return [self]
    # @raise [ThreadError] if the count is zero
    def done
      @guard.synchronize do
        if @count.zero?
          raise ThreadError,
                "Heddle::WaitGroup#done: nothing is under way; call add before the work begins"
        end

        @count -= 1
        next unless @count.zero?

        @waiter&.wake
        @waiter = nil
      end
      self
    end

    # Makes a fiber as {Heddle.spin} does, and counts it until its end, whichever end that is.
    #
    # @param arguments [Array] passed to the block
    # @param name [#to_s, nil] the new fiber's name; see {Heddle.annotate}
    # @yield [*arguments] what the fiber runs
    # @return [Fiber] the new fiber, a child of the calling fiber
    # @raise [ArgumentError] without a block
    # @raise [RuntimeError] if the thread has no Heddle::Scheduler
    # @raise [FiberError, NoMemoryError] if there is no memory for another fiber
    # @example
    #   group.go(url) { |address| fetch(address) }
    def go(*, name: nil, **, &block)
      ArgumentChecks.block(block, "Heddle::WaitGroup#go")
      scheduler = Context.scheduler("Heddle::WaitGroup#go")
      counted = nil
      task = Task.new(scheduler, parent: Task.current(scheduler), name:)
      task.await(self)
      @guard.synchronize { counted = @count += 1 }
      task.start(*, **, &block)
    ensure
      done if counted && !task.fiber
    end

    # Waits until all work is done.
    #
    # @param timeout [Float, Integer, Rational, nil] seconds; nil is for ever
    # @return [Boolean] true; false after the timeout
    # @raise [ArgumentError] for a timeout that is negative, infinite or NaN
    # @raise [TypeError] for a timeout that is not a number
    # @example
    #   group.wait(timeout: 5.0) or abort "too slow"
    def wait(timeout: nil)
      ArgumentChecks.seconds(timeout, "Heddle::WaitGroup#wait") if timeout
      waiter = @guard.synchronize do
        return true if @count.zero?

        @waiter ||= Waiter.new
      end
      waiter.wait(timeout)
    end

    # @api private
    # A fiber of {#go} has ended.
    #
    # @return [Boolean] false: the fiber's error is raised in its parent
    def ended(_task) # rubocop:disable Naming/PredicateMethod -- it is an action
      done
      false
    end

    # @return [String]
    def inspect
      "#<#{self.class} count=#{@count}>"
    end
  end
end
