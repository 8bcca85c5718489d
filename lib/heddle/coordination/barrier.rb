# frozen_string_literal: true

module Heddle
  # A group of fibers that is awaited, or stopped, as a whole. Any thread may add to it, await it and stop it. The idea
  # is that of Async::Barrier.
  #
  # (For threads that wait for one another at a certain point, see concurrent-ruby's CyclicBarrier.)
  #
  # @example
  #   barrier = Heddle::Barrier.new
  #   urls.each { |url| barrier.spin { fetch(url) } }
  #   pages = Heddle.move_on_after(5) { barrier.await_all }
  #   barrier.stop
  class Barrier
    def initialize
      @guard = Guard.new
      @tasks = []
      @running = 0
      @awaiting = 0
    end

    # @return [Integer] the number of fibers that have not ended
    def size
      @running
    end

    # @return [Boolean] whether all fibers have ended
    def empty?
      @running.zero?
    end

    # Makes a fiber as {Heddle.spin} does, and adds it to the group. {#await_all} raises an error that ends it; the
    # parent does not get it.
    #
    # @param arguments [Array] passed to the block
    # @param name [#to_s, nil] the new fiber's name; see {Heddle.annotate}
    # @yield [*arguments] what the fiber runs
    # @return [Fiber] the new fiber
    # @raise (see Heddle.spin)
    # @example
    #   barrier.spin(url) { |address| fetch(address) }
    def spin(*, name: nil, **, &block)
      ArgumentChecks.block(block, "Heddle::Barrier#spin")
      scheduler = Context.scheduler("Heddle::Barrier#spin")
      task = Task.new(scheduler, parent: Task.current(scheduler), group: self, name:)
      @guard.synchronize do
        @tasks << task
        @running += 1
      end
      task.start(*, **, &block)
    ensure
      remove(task) unless task.nil? || task.fiber
    end

    # Waits until all fibers have ended. The group forgets them then, and can be used again.
    #
    # @return [Array<Object>] their values, in the order in which they were added; nil for a fiber that was stopped
    # @raise the first error that ends one of them. The others are stopped first, and have ended when it is raised.
    # @example
    #   first, second = barrier.await_all
    def await_all
      counted = nil
      begin
        @guard.synchronize { counted = @awaiting += 1 }
        wait { @failed || @running.zero? }
        failed = @failed
        stop if failed
        tasks = @guard.synchronize { take_ended }
      ensure
        @guard.synchronize { @awaiting -= 1 } if counted
      end
      raise failed.error if failed

      tasks.map(&:value)
    end

    # Stops all fibers, and waits for their end. The group forgets them and their errors then, unless {#await_all}
    # waits for them: it returns nil for each. If the calling fiber is cancelled in the meantime, the cancellation
    # takes place when they have ended. A fiber of the group may call this; it ends the others.
    #
    # @return [self]
    def stop
      Heddle.shield do
        tasks = @guard.synchronize { @tasks.dup }
        tasks.each { |task| task.stop unless task.ended? || task.fiber.equal?(Fiber.current) }
        wait { @running.zero? || only_self? }
        @guard.synchronize { take_ended if @awaiting.zero? }
      end
      self
    end

    # @api private
    def ended(task)
      @guard.synchronize do
        @running -= 1
        @failed ||= task if task.error
        @waiter&.wake
        @waiter = nil
      end
    end

    # @return [String]
    def inspect
      "#<#{self.class} size=#{size}>"
    end

    private

    # Waits until the block's value is true.
    def wait
      until yield
        waiter = @guard.synchronize { yield ? nil : @waiter ||= Waiter.new }
        waiter&.wait
      end
    end

    # Whether the calling fiber is the only member that has not ended.
    def only_self?
      current = Fiber.current
      @running == 1 && @tasks.any? { |task| task.fiber.equal?(current) && !task.ended? }
    end

    def take_ended
      @failed = nil
      ended, @tasks = @tasks.partition(&:ended?)
      ended
    end

    # Removes a task whose fiber could not be made.
    def remove(task)
      @guard.synchronize { @running -= 1 if @tasks.delete(task) }
    end
  end
end
