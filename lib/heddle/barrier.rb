# frozen_string_literal: true

module Heddle
  # A group of fibers that is awaited, or stopped, as one. Any thread may add to it, wait for it and stop it.
  #
  # (For threads that wait for one another at a certain point, see concurrent-ruby's CyclicBarrier.)
  #
  # @example
  #   barrier = Heddle::Barrier.new
  #   urls.each { |url| barrier.spin { fetch(url) } }
  #   pages = Heddle.move_on_after(5) { barrier.await }
  #   barrier.stop
  class Barrier
    def initialize
      @guard = Guard.new
      @tasks = []
      @waiters = []
      @left = 0
    end

    # @return [Integer] how many have not ended
    def size
      @left
    end

    # @return [Boolean]
    def empty?
      @left.zero?
    end

    # Like {Heddle.spin}, but an error goes to who awaits the group.
    #
    # @param arguments [Array] what the block is given
    # @return [Fiber]
    # @raise (see Heddle.spin)
    def spin(*, &block)
      Checks.block(block, "Heddle::Barrier#spin")
      scheduler = Structure.scheduler
      task = Task.new(scheduler, parent: Task.current(scheduler), group: self)
      @guard.synchronize do
        @tasks << task
        @left += 1
      end
      task.start(*, &block)
    rescue FiberError, NoMemoryError
      withdraw(task) unless task.fiber
      raise
    end

    # Waits until all have ended. What has been waited for is then forgotten, and the group can be used again.
    #
    # @return [Array] their values, in the order in which they were added; nil for those that were told to end
    # @raise the first error of any of them, when the others have been told to end and have done so
    def await
      wait { @failed || @left.zero? }
      failed = @failed
      stop if failed
      tasks = @guard.synchronize { take_ended }
      raise failed.error if failed

      tasks.map(&:value)
    end

    # Tells all to end, and waits for it. Who is cancelled meanwhile is so when they have ended.
    #
    # @return [self]
    def stop
      Heddle.shield do
        tasks = @guard.synchronize { @tasks.dup }
        tasks.each { |task| task.stop unless task.ended? || task.fiber.equal?(Fiber.current) }
        wait { @left.zero? || only_self? }
      end
      self
    end

    # @api private
    def ended(task)
      @guard.synchronize do
        @left -= 1
        @failed ||= task if task.error
        @waiters.each(&:wake).clear
      end
    end

    # @return [String]
    def inspect
      "#<#{self.class} size=#{size}>"
    end

    private

    def wait
      until yield
        waiter = Waiter.new
        @guard.synchronize { yield ? waiter.wake : @waiters << waiter }
        begin
          waiter.wait
        ensure
          @guard.synchronize { @waiters.delete(waiter) }
        end
      end
    end

    # A member that stops its own group goes on.
    def only_self?
      current = Fiber.current
      @left == 1 && @tasks.any? { |task| task.fiber.equal?(current) && !task.ended? }
    end

    def take_ended
      @failed = nil
      ended, @tasks = @tasks.partition(&:ended?)
      ended
    end

    def withdraw(task)
      @guard.synchronize { @left -= 1 if @tasks.delete(task) }
    end
  end
end
