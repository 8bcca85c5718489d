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
    # A call of {#await_all}: the fiber whose error it raises, all that failed and whose parents do not get the error,
    # and all fibers of the group once they have ended. The barrier's guard protects it.
    Wait = Struct.new(:owner, :failed, :claimed, :ended)
    private_constant :Wait

    def initialize
      @guard = Guard.new
      @generation = Native.generation
      @nodes = []
      @failed = []
      @running = 0
      @waits = []
    end

    # @return [Integer] the number of fibers that have not ended
    def size
      synchronize { @running }
    end

    # @return [Boolean] whether all fibers have ended
    def empty?
      size.zero?
    end

    # Makes a fiber as {Heddle.spin} does, and adds it to the group. {#await_all} raises an error that ends it, if it is
    # called in time; else the parent gets the error, as that of any child.
    #
    # @param arguments [Array] passed to the block
    # @param name [#to_s, nil] the new fiber's name; see {Heddle.annotate}
    # @param background [Boolean] whether the parent does not wait for it
    # @yield [*arguments] what the fiber runs
    # @return [Task] the new fiber
    # @raise (see Heddle.spin)
    # @example
    #   barrier.spin(url) { |address| fetch(address) }
    def spin(*, name: nil, background: false, &block)
      ArgumentChecks.block(block, "Heddle::Barrier#spin")
      scheduler = Context.scheduler("Heddle::Barrier#spin")
      node = TreeNode.new(scheduler, parent: TreeNode.current(scheduler), name:, background:)
      node.group = self
      Heddle.without_preemption do
        add(node)
        node.start(*, &block)
      ensure
        remove(node) unless node.started?
      end
    end

    # Waits until all fibers have ended. The group forgets them then, and can be used again.
    #
    # @return [Array<Object>] their values, in the order in which they were added; nil for a fiber that was stopped
    # @raise the first error that ends one of them. The others are stopped first, and have ended when it is raised.
    # @example
    #   first, second = barrier.await_all
    def await_all
      Heddle.without_preemption do
        call = nil
        synchronize { call = begin_wait }
        wait { call.ended || call.failed }
        settled = true
        stop if call.failed
        synchronize { forget_ended }
        raise call.failed.error if call.failed

        call.ended.map(&:value)
      ensure
        synchronize { end_wait(call, settled) } if call
      end
    end

    # Stops all fibers, and waits for their end. The group forgets them then, unless {#await_all} waits for them: it
    # returns nil for each. If the calling fiber is cancelled in the meantime, the cancellation takes place when they
    # have ended. A fiber of the group may call this; it ends the others.
    #
    # @return [self]
    def stop
      Heddle.shield do
        others = synchronize { @nodes.reject { |node| node.fiber.equal?(Fiber.current) } }
        others.each { |node| node.stop unless node.ended? }
        wait do
          others.pop while others.last&.ended?
          others.empty?
        end
        synchronize { forget_ended if @waits.empty? }
      end
      self
    end

    # @api private
    # A fiber has ended.
    #
    # @return [Integer] how many calls of {#await_all} raise its error
    def ended(node)
      synchronize do
        @running -= 1
        fail_with(node) if node.error
        end_waits if @running.zero?
        wake
        @waits.size
      end
    end

    # @return [String]
    def inspect
      "#<#{self.class} size=#{size}>"
    end

    private

    def synchronize
      @guard.synchronize do
        leave_fibers_in_parent unless @generation == Native.generation
        yield
      end
    end

    # In a forked child the fibers of its parent do not exist, but for the one that has forked.
    def leave_fibers_in_parent
      @generation = Native.generation
      @nodes.reject! { |node| node.ended? || node.fiber.nil? || node.left_in_parent? }
      @running = @nodes.size
      [@failed, @waits].each(&:clear)
      @waiter = nil
    end

    # Waits until the block's value is true.
    def wait
      until yield
        waiter = synchronize { yield ? nil : @waiter ||= Waiter.new }
        waiter&.wait
      end
    end

    # The methods below are called with the guard, but for the next two.

    def add(node)
      synchronize do
        @nodes << node
        @running += 1
      end
    end

    # Removes a fiber that could not be made.
    def remove(node)
      synchronize do
        next unless @nodes.delete(node)

        @running -= 1
        end_waits if @running.zero?
        wake
      end
    end

    def begin_wait
      # The errors may be on their way to the parents.
      call = Wait.new(owner: TreeNode.of(Fiber.current), claimed: @failed.select(&:claim), failed: @failed.first)
      @waits << call
      end_waits if @running.zero?
      call
    end

    # If the wait was broken off, the parents get the errors after all.
    def end_wait(call, settled)
      @waits.delete_if { |other| other.equal?(call) }
      call.claimed.each(&:unclaim) unless settled
    end

    def fail_with(node)
      @failed << node
      @waits.each do |call|
        call.failed ||= node
        call.claimed << node
        call.owner&.relay(node)
      end
    end

    def end_waits
      @waits.each { |call| call.ended ||= @nodes.dup }
    end

    def wake
      @waiter&.wake
      @waiter = nil
    end

    def forget_ended
      @failed.clear
      @nodes.reject!(&:ended?)
    end
  end
end
