# frozen_string_literal: true

module Heddle
  # The children that a block has started, a fiber's or that of {Heddle.run}, and how they end with it.
  #
  # Methods of the parent's fiber call {await} or {complete}, and then {finish}. All other methods may be called in
  # any fiber of the thread, and must not be preempted.
  class Children
    # @return [Children, nil] those of the block around this one
    attr_reader :outer

    # @param node [TreeNode] the parent's
    # @param outer [Children, nil]
    def initialize(node, outer = nil)
      @node = node
      @outer = outer
      # Hashes, which keep the order and delete in constant time. Each request is a block, and most start no fibers.
      @awaited = @background = @received = nil
    end

    # @return [Array<TreeNode>] the children that have not ended
    def to_a = [*@awaited&.keys, *@background&.keys]

    # @return [Array<Fiber>] their fibers
    def fibers = to_a.filter_map(&:fiber)

    # @return [Boolean] whether all children have ended
    def empty? = ended?(:all)

    # A child is about to start.
    def add(child) = (child.background? ? @background ||= {} : @awaited ||= {})[child] = true

    # A child has ended, or could not be started.
    def remove(child)
      (child.background? ? @background : @awaited)&.delete(child)
      @node.wake(self) if @waiting && ended?(@waiting)
    end

    # In a forked child these fibers do not exist.
    def clear = @awaited = @background = nil

    # Asks the children to end, and does not wait for that.
    def stop = to_a.each(&:stop)

    # At the end of a block that has returned: waits for the children, but for those in the background.
    #
    # @raise the error of a child that no fiber awaits, and whatever interrupts the wait
    def await
      @waiting = :awaited
      @node.scheduler.block(self, nil) until ended?(:awaited)
      Native.raise_at_end(@node.scheduler)
    ensure
      @waiting = nil
    end

    # Like {await}, where nothing can be raised in the fiber any more. {finish} returns the error.
    def complete
      @ending = true
      Native.defer_raises(@node.scheduler) { wait_through(:awaited) } unless ended?(:awaited)
    end

    # Stops the children that are left, running their `ensure`, and waits for their end. Only exceptions that concern
    # the whole thread interrupt the wait.
    #
    # @return [Exception, nil] the first error of a child that failed meanwhile
    def finish
      @ending = true
      unless empty?
        Native.defer_raises(@node.scheduler) do
          stop
          wait_through(:all)
        end
      end
      @late_error
    end

    # A child has failed, and no fiber awaits it. Stops the others, and raises the error in the parent's next wait.
    # {finish} returns it if the parent's block has ended.
    #
    # @param child [TreeNode]
    # @return [Integer, nil] a number for {take_back}; nil if {finish} returns the error
    def receive(child)
      stop
      number = Native.deliver_of_child(@node.scheduler, @node.fiber, child.error) if @node.fiber && !@ending
      number ? note_received(number) : @late_error ||= child.error
      number
    end

    # Cancels {receive}, because the error is raised by other means.
    #
    # @param number [Integer] what {receive} has returned
    # @return [Boolean] false if the error has been raised already
    def take_back(number) = Native.retract(@node.scheduler, @node.fiber, number)

    # The block has ended, perhaps by another error: forgets the errors of children that have not been raised. Children
    # that have not ended, because the wait for them was broken off, end with the block around this one.
    def close
      @received&.each { |number| take_back(number) }
      to_a.each { |child| child.join(@outer) } unless empty?
    end

    private

    # @param which [:awaited, :all] :awaited leaves out those in the background
    # @return [Boolean]
    def ended?(which)
      (@awaited.nil? || @awaited.empty?) && (which == :awaited || @background.nil? || @background.empty?)
    end

    # Errors are raised in the order of their receipt. Those that have been raised are forgotten.
    def note_received(number)
      @received ||= []
      @received.shift until @received.empty? || Native.unraised?(@node.scheduler, @node.fiber, @received.first)
      @received.push(number)
    end

    # Waits until these children have ended. An exception stops them, and takes the place of a child's error, as in an
    # `ensure` clause. An `exit` in a signal's handler stays.
    def wait_through(which)
      @waiting = which
      @node.scheduler.block(self, nil) until ended?(which)
    rescue SignalException
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException -- raised when the children have ended
      @late_error = e unless @late_error.is_a?(SystemExit)
      stop
      retry
    ensure
      @waiting = nil
    end
  end
  private_constant :Children
end
