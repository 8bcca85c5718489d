# frozen_string_literal: true

module Heddle
  # A fiber's place in the tree of fibers: its parent, its children, the waits for its end, and its result.
  #
  # A fiber gets a node when it is spun, when it spins other fibers, or when another fiber awaits it. Only {#stop} may
  # be called on another thread than the fiber's.
  class TreeNode
    # The instance variable in which a fiber has its node, and a scheduler that of its root.
    VARIABLE = :@heddle_node
    private_constant :VARIABLE

    # Finding, and making, the nodes of fibers.
    class << self
      # @return [TreeNode, nil] the fiber's node
      def of(fiber)
        fiber.instance_variable_get(VARIABLE)
      end

      # @return [TreeNode] the current fiber's node; it is made if need be
      def current(scheduler)
        node = of(Fiber.current)
        return adopt(Fiber.current, scheduler) unless node

        node.reset_after_fork(scheduler)
        node
      end

      # Returns the node of a fiber, and makes one for a fiber of `Fiber.schedule`. The scheduler reports the fiber's
      # end to one node only.
      #
      # @return [TreeNode, nil] nil if the fiber is not one of this scheduler's
      def observed(fiber, scheduler)
        of(fiber) || Heddle.without_preemption { of(fiber) || observe(fiber, scheduler) }
      end

      # @return [TreeNode] of the thread's root fiber. It lasts as long as the scheduler. Fibers that cannot report
      #   their end share it.
      def root(scheduler)
        scheduler.instance_variable_get(VARIABLE) || Heddle.without_preemption do
          scheduler.instance_variable_get(VARIABLE) || scheduler.instance_variable_set(VARIABLE, new(scheduler))
        end
      end

      # Ends the root's children.
      #
      # @return [Exception, nil] their first error that has not been raised elsewhere
      def end_root(scheduler)
        root = scheduler.instance_variable_get(VARIABLE)
        return unless root

        root.reset_after_fork(scheduler)
        root.fiber = Fiber.current
        root.end_children || undelivered(scheduler)
      end

      private

      def observe(fiber, scheduler)
        node = new(scheduler)
        node.tap { |observer| observer.assign_to(fiber) } if Native.observe_exit(scheduler, fiber, node)
      end

      # @return [Exception, nil] what was sent to the root while it did not wait
      def undelivered(scheduler)
        Native.raise_at_end(scheduler)
        nil
      rescue SignalException
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised when the scheduler is closed
        e
      end

      def adopt(fiber, scheduler)
        observed(fiber, scheduler) || (fiber.blocking? ? adopt_root(fiber, scheduler) : adopt_generator(scheduler))
      end

      def adopt_root(fiber, scheduler)
        root(scheduler).tap { |node| node.fiber ||= fiber }
      end

      # A fiber that another fiber has resumed: the fibers that it spins are children of that other fiber.
      def adopt_generator(scheduler)
        resumer = Native.current_fiber(scheduler)
        (resumer && observed(resumer, scheduler)) || root(scheduler)
      end
    end

    # @return [Fiber, nil] nil for a root that has not called Heddle yet
    attr_accessor :fiber
    # @return [Proc, nil] the program's block
    attr_accessor :block
    # @return [Barrier, nil] is told of the fiber's end
    attr_writer :group
    # @return [Scheduler]
    attr_reader :scheduler
    # @return [TreeNode, nil]
    attr_reader :parent
    # @return [Object, nil] the block's value
    attr_reader :value
    # @return [Exception, nil] the error that ended the block
    attr_reader :error
    # @return [Integer, nil] the sequence number of the fiber's end among those of its scheduler
    attr_reader :end_number

    # @param scheduler [Scheduler]
    # @param parent [TreeNode, nil]
    # @param name [#to_s, nil] the fiber's name; see {Heddle.annotate}
    # @param background [Boolean] whether the fiber is stopped when the parent's block and its other children have ended
    # @param context [WorkContext, nil] what {#start}'s fiber takes along; nil is what the calling fiber has
    def initialize(scheduler, parent: nil, name: nil, background: false, context: nil)
      @scheduler = scheduler
      @parent = parent
      @name = Names.convert(name)
      @background = background
      @context = context
      @waits = []
      @generation = Native.generation
    end

    # Makes this the fiber's node.
    def assign_to(fiber)
      @fiber = fiber
      fiber.instance_variable_set(VARIABLE, self)
      name_fiber
    end

    # Makes a fiber that runs the block, and puts it into the run queue.
    #
    # @return [Task]
    def start(*arguments, &block)
      work = WorkContext.carry(@block = block, @context)
      Heddle.without_preemption { spawn { carry { work.call(*arguments) } } }
      @fiber
    end

    # @return [Boolean] whether {#start} has put the fiber into the run queue
    def started? = @started || false

    # Runs the block in the current fiber, then ends the children. Stores the result in {#value} and {#error}.
    #
    # Only the block may be preempted. An exception that reaches the fiber elsewhere would keep it from reporting its
    # end to the fibers that wait for it.
    #
    # @raise [SignalException] which concerns the whole thread
    def carry
      value = error = nil
      begin
        Native.raise_deferred(@scheduler)
        returned = Native.run_user_block(@scheduler, true) { yield } # rubocop:disable Style/ExplicitBlockArgument -- keeps its self
        await_children
        value = returned
      rescue Stop, SignalException => e
        # A fiber that was stopped has no error. A signal is raised again, below.
        interrupt = e if e.is_a?(SignalException)
      rescue Exception => e # rubocop:disable Lint/RescueException -- propagated to the parent, or to a waiting fiber
        e.equal?(@relayed) ? interrupt = e : error = e
      end
    ensure
      # Runs also if the fiber is being killed.
      interrupt ? end_without_waiting(interrupt) : finish(value, error)
      raise_further(interrupt)
    end

    # A fiber of `Fiber.schedule`, which runs without {#carry}, has returned. The extension calls this.
    def returned(value)
      reset_after_fork(@scheduler)
      @returned = true
      @children&.complete
      finish(value, nil)
      raise @error if @error
    end

    # Such a fiber has raised an error; or a fiber could not be started. The extension calls this.
    def failed(error) = finish(nil, error)

    # The fiber has been killed, perhaps before it has begun, or is ended by what concerns its whole thread. It must not
    # wait. The extension calls this.
    #
    # @param interrupt [Exception, nil] what is raised in the root
    # @return [Boolean] whether it must not be: see {#relay}
    def killed(interrupt = nil) # rubocop:disable Naming/PredicateMethod -- it is an event
      end_without_waiting(interrupt) unless ended?
      relayed?
    end

    # @return [Boolean] whether what concerns the whole thread has ended the fiber
    def interrupted? = @interrupted || false

    # @return [Boolean] whether the root has that from another fiber, which this one awaited
    def relayed? = !@error.nil? && @error.equal?(@relayed)

    # The fiber waited for another one, and gets what has ended that one. The root gets it from there, and must not get
    # it once more if it ends this fiber, too.
    #
    # @param node [TreeNode] the other fiber's
    def relay(node) = @relayed = (node.error if node.interrupted?)

    # Stops the fiber, and does not wait for its end. Any thread may call this.
    #
    # @return [Boolean] false if the scheduler does not know the fiber
    def stop
      @stopped = true
      known = @fiber && Native.stop(@scheduler, @fiber)
      # Nothing can be raised any more in a fiber of `Fiber.schedule` that waits for its children.
      @children.stop if @returned && @children
      known
    end

    # @return [Boolean]
    def ended? = @ended || false

    # In a forked child: the fiber exists in the parent process only. Here it is dead, as Ruby has it for threads.
    #
    # @return [Boolean]
    def left_in_parent?
      return false if @generation == Native.generation || Native.observe_exit(@scheduler, @fiber, self)

      @ended = true
    end

    # @return [Boolean]
    def background? = @background

    # Calls `wait.ended(node)` at the fiber's end, if the fiber has not ended.
    #
    # @param wait [TaskWait]
    # @raise [FiberError] if the fiber itself waits for the end of all others
    def await(wait)
      # In this order, because the fiber may be preempted in between.
      @waits << wait
      return forget(wait) if ended?
      return unless Native.waits_for_all_others?(@scheduler, @fiber)

      raise FiberError, "#{@fiber.inspect} waits in Heddle::Scheduler#close or #run until all other fibers have " \
                        "ended: to await it, end the others first"
    end

    # Takes back {#await}.
    def forget(wait) = @waits.delete(wait)

    # @param other [TreeNode]
    # @return [Boolean] whether the other fiber's end waits for this one: this one is its child, or a child of such a
    #   child, and none of them is in the background
    def delays?(other)
      node = self
      node = node.parent until node.nil? || node.background? || node.parent.equal?(other)
      !(node.nil? || node.background?)
    end

    # In a forked child, drops the parent and the children: those fibers exist in the parent process only.
    def reset_after_fork(scheduler)
      return if @generation == Native.generation

      @generation = Native.generation
      @forked = true
      @scheduler = scheduler
      @parent = @siblings = nil
      each_block(&:clear)
      @waits.clear
    end

    # @return [Children] those of the innermost block that the fiber runs
    def children = @children ||= Children.new(self)

    # @return [Array<Fiber>] the children that have started and not ended
    def child_fibers
      return [] if left_in_parent?

      reset_after_fork(@scheduler)
      each_block.flat_map(&:fibers)
    end

    # The fiber begins a block of {Heddle.run}.
    #
    # @return [Children] those of that block, for {#leave_block}
    def enter_block = @children = Children.new(self, children)

    # The block has failed, and its caller rescues that within the block. Does not wait for the children's ends.
    def stop_children = @children&.stop

    # The block has ended.
    def leave_block(block)
      block.close
      @children = block.outer
    end

    # The block of {Heddle.run} in which the fiber was started has ended before it.
    #
    # @param siblings [Children] those of the block around that one
    def join(siblings)
      @siblings = siblings
      siblings.add(self)
    end

    # Wakes the fiber, which waits for its children.
    def wake(blocker) = @scheduler.unblock(blocker, @fiber)

    # @return [Boolean] whether another fiber waits for the fiber's end, or will: a parent does at its own end. The
    #   wait of a root is not counted, as it takes place when the scheduler closes.
    def awaited?
      return false if ended?

      !@waits.empty? || !(@parent.nil? || @parent.fiber.nil? || @parent.fiber.blocking?)
    end

    # Ends the children of a root, as a block that has returned does.
    #
    # @return [Exception, nil] the first error of a child
    def end_children
      @children&.complete
      @children&.finish
    end

    # @return [Integer] the sequence number for a fiber of this root's scheduler that ends now
    def count_end = @ends = (@ends || 0) + 1

    # A wait for the fiber's end does not raise its error, because it was broken off. If there is no other, the parent
    # gets the error.
    def unclaim
      propagate if (@claims -= 1).zero? && @error
    end

    # A wait that has begun after the fiber's end raises the error. Takes it back from the parent.
    #
    # @return [Boolean] false if there is none, or the parent has raised it already
    def claim
      sent = @sent
      @sent = nil
      claimed = (sent && @siblings.take_back(sent)) || @claims.positive?
      @claims += 1 if claimed
      claimed
    end

    private

    def spawn(&code)
      @siblings = @parent&.children
      @siblings&.add(self)
      assign_to(Task.make(@scheduler))
      Native.spawn(@scheduler, code, self, @fiber)
      @started = true
      # Accounts and traces know the fiber only now.
      name_fiber
      # {#stop} was called on another thread, before the scheduler knew the fiber.
      Native.stop(@scheduler, @fiber) if @stopped
    ensure
      # An exception for the thread may come when the fiber is in the run queue.
      @started ||= @fiber && Native.state(@fiber) == :runnable
      leave_tree unless @started
    end

    def await_children
      reset_after_fork(@scheduler)
      # Most fibers have started none.
      @children ? @children.await : Native.raise_at_end(@scheduler)
    end

    # Raises what ends more than the fiber: what concerns the whole thread, and in a forked child any error, as the
    # process ends with the fiber that has forked.
    def raise_further(interrupt)
      raise interrupt if interrupt && !relayed?
      raise @error if @error && @forked
    end

    def name_fiber
      Names.assign(@fiber, @name) if @name
    end

    def leave_tree
      @ended = true
      @siblings&.remove(self)
    end

    def finish(value, error)
      reset_after_fork(@scheduler)
      late = @children&.finish
      failure = error || late
      Native.count_failure(@scheduler) if failure
      conclude(value, failure)
    ensure
      # A signal, or the fiber's being killed, has broken off the wait for the children.
      end_without_waiting unless ended?
    end

    # Ends the fiber without waiting for the children.
    def end_without_waiting(interrupt = nil)
      each_block(&:stop)
      @interrupted = !interrupt.nil?
      conclude(nil, interrupt)
    end

    def conclude(value, error)
      @value = value unless error
      @error = error
      @end_number = TreeNode.root(@scheduler).count_end
      @ended = true
      @claims = @waits.count { |wait| wait.ended(self) } + (@group ? @group.ended(self) : 0)
      @waits.clear
      @siblings&.remove(self)
      propagate if @error && @claims.zero?
    end

    # Sends the error to the parent. What concerns the whole thread goes to the root by itself.
    def propagate
      @sent = @siblings&.receive(self) unless interrupted?
    end

    def each_block
      return enum_for(:each_block) unless block_given?

      block = @children
      while block
        yield block
        block = block.outer
      end
    end
  end
  private_constant :TreeNode
end
