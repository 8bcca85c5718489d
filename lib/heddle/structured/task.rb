# frozen_string_literal: true

module Heddle
  # A fiber's place in the tree of fibers: its parent, its children, the waits for its end, and its result.
  #
  # A fiber gets a task when it is spun, when it spins other fibers, or when another fiber awaits it. Only {#stop} may
  # be called on another thread than the fiber's.
  class Task
    # The instance variable in which a fiber has its task, and a scheduler that of its root.
    VARIABLE = :@heddle_task
    private_constant :VARIABLE

    # Finding, and making, the tasks of fibers.
    class << self
      # @return [Task, nil] the fiber's task
      def of(fiber)
        fiber.instance_variable_get(VARIABLE)
      end

      # @return [Task] the current fiber's task; it is made if need be
      def current(scheduler)
        task = of(Fiber.current)
        task ? task.tap { |known| known.reset_after_fork(scheduler) } : adopt(Fiber.current, scheduler)
      end

      # Makes a task for a fiber of `Fiber.schedule`. The scheduler reports the fiber's end to the task.
      #
      # @return [Task, nil] nil if the fiber is not one of this scheduler's
      def observe(fiber, scheduler)
        task = new(scheduler)
        return unless Native.observe_exit(scheduler, fiber, task)

        task.tap { |observer| observer.assign_to(fiber) }
      end

      # @return [Task] of the thread's root fiber. It lasts as long as the scheduler. Fibers that cannot report their
      #   end share it.
      def root(scheduler)
        scheduler.instance_variable_get(VARIABLE) || scheduler.instance_variable_set(VARIABLE, new(scheduler))
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

      # @return [Integer] the sequence number for a task that ends now
      def next_end_number = Native.next_end_number

      private

      # @return [Exception, nil] what was sent to the root while it did not wait
      def undelivered(scheduler)
        Native.raise_deferred(scheduler)
        nil
      rescue SignalException
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised when the scheduler is closed
        e
      end

      def adopt(fiber, scheduler)
        observe(fiber, scheduler) || (fiber.blocking? ? adopt_root(fiber, scheduler) : adopt_generator(scheduler))
      end

      def adopt_root(fiber, scheduler)
        root(scheduler).tap { |task| task.fiber ||= fiber }
      end

      # A fiber that another fiber has resumed: the fibers that it spins are children of that other fiber.
      def adopt_generator(scheduler)
        resumer = Native.current_fiber(scheduler)
        (resumer && (of(resumer) || observe(resumer, scheduler))) || root(scheduler)
      end
    end

    # @return [Fiber, nil] nil for a root that has not called Heddle yet
    attr_accessor :fiber
    # @return [Proc, nil] the program's block
    attr_accessor :block
    # @return [Integer] the number of the parent's scopes that were open when this task started
    attr_accessor :depth
    # @return [Scheduler]
    attr_reader :scheduler
    # @return [Task, nil]
    attr_reader :parent
    # @return [Object, nil] the block's value
    attr_reader :value
    # @return [Exception, nil] the error that ended the block
    attr_reader :error
    # @return [Integer, nil] the sequence number of the task's end; tasks are compared by it
    attr_reader :end_number

    # @param scheduler [Scheduler]
    # @param parent [Task, nil]
    # @param group [#ended, nil] a {Barrier} or a job: it receives the error instead of the parent
    # @param name [#to_s, nil] the fiber's name; see {Heddle.annotate}
    # @param context [WorkContext, nil] what {#start}'s fiber takes along; nil is what the calling fiber has
    def initialize(scheduler, parent: nil, group: nil, name: nil, context: nil)
      @scheduler = scheduler
      @parent = parent
      @group = group
      @name = Names.convert(name)
      @context = context
      # A Hash keeps the order, and deletes in constant time.
      @children = {}
      @waits = []
      @depth = 0
      @generation = Native.generation
    end

    # Makes this the fiber's task.
    def assign_to(fiber)
      @fiber = fiber
      fiber.instance_variable_set(VARIABLE, self)
      Names.assign(fiber, @name) if @name
    end

    # Makes a fiber that runs the block, and puts it into the run queue.
    #
    # @return [Fiber]
    def start(*arguments, **keywords, &block)
      work = WorkContext.carry(@block = block, @context)
      Heddle.without_preemption do
        @parent&.add(self)
        carried = -> { carry { work.call(*arguments, **keywords) } }
        assign_to(Native.spawn(@scheduler, carried, self, FiberBody.for(@scheduler)))
      ensure
        @parent&.remove(self) unless @fiber
      end
      @fiber
    end

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
        value = Native.run_user_block(@scheduler) { yield } # rubocop:disable Style/ExplicitBlockArgument -- keeps its self
        # Raises what children sent to this fiber while it did not wait.
        Native.raise_deferred(@scheduler)
      rescue Stop, SignalException => e
        # A fiber that was stopped has no error. A signal is raised again, below.
        interrupt = e if e.is_a?(SignalException)
      rescue Exception => e # rubocop:disable Lint/RescueException -- propagated to the parent, or to a waiting fiber
        error = e
      end
    ensure
      # Runs also if the fiber is being killed.
      interrupt ? end_without_waiting : finish(value, error)
      raise interrupt if interrupt
    end

    # A fiber of `Fiber.schedule`, which runs without {#carry}, has returned. The extension calls this.
    def returned(value)
      finish(value, nil)
      raise @error if @error
    end

    # Such a fiber has raised an error; or a fiber could not be started. The extension calls this.
    def failed(error) = finish(nil, error)

    # The fiber has been killed, perhaps before it has begun. It must not wait. The extension calls this.
    def killed
      end_without_waiting unless ended?
    end

    # Stops the fiber, and does not wait for its end. Any thread may call this.
    #
    # @return [Boolean] false if the scheduler does not know the fiber
    def stop
      Native.stop(@scheduler, @fiber)
    end

    # @return [Boolean]
    def ended? = @ended || false

    # Calls `wait.ended(task)` at the task's end, if the task has not ended.
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

    # In a forked child, drops the parent and the children: those fibers exist in the parent process only.
    def reset_after_fork(scheduler)
      return if @generation == Native.generation

      @generation = Native.generation
      @scheduler = scheduler
      @parent = nil
      forget_children
      @waits.clear
    end

    # The children: they are stopped when the task ends, and it waits for their end.

    # @return [Array<Fiber>] the children that have started and not ended
    def child_fibers = @children.keys.filter_map(&:fiber)

    # A child is about to start.
    def add(child)
      child.depth = @enclosing.size if @enclosing
      @children[child] = true
    end

    # A child has ended.
    def remove(child)
      @children.delete(child) || @enclosing&.each { |children| children.delete(child) }
      @scheduler.unblock(self, @fiber) if @ending && @children.empty?
    end

    # Begins a scope: until {#end_scope}, {#end_children} concerns the children that are added from now on.
    #
    # @return [Hash] the children until now, for {#end_scope}
    def begin_scope
      (@enclosing ||= []).push(@children)
      @children = {}
      @enclosing.last
    end

    # Ends a scope. Children that have not ended, because the wait for them was broken off, end with the scope around
    # it.
    def end_scope(children)
      return unless children

      drop_received(@enclosing.size)
      @enclosing.delete_if { |other| other.equal?(children) }
      @children = children.merge!(@children)
    end

    # @return [Boolean] whether another fiber waits for the task's end, or will: a parent does at its own end. The
    #   wait of a root is not counted, as it takes place when the scheduler closes.
    def awaited?
      return false if ended?

      !@waits.empty? || !(@parent.nil? || @parent.fiber.nil? || @parent.fiber.blocking?)
    end

    # Stops the children, running their `ensure`, and waits for their end. Only exceptions that concern the whole
    # thread interrupt the wait.
    #
    # @return [Exception, nil] the first error of a child that failed in the meantime
    def end_children
      return take_late_error if @children.empty?

      @ending = true
      Native.defer_raises(@scheduler) do
        stop_children
        wait_for_children
      end
      take_late_error
    ensure
      @ending = false
    end

    # How the error of a child reaches its parent.

    # Raises a child's unhandled error wherever this fiber waits, or stores it if the fiber is ending.
    #
    # @param child [Task]
    # @return [Integer, nil] a number for {#take_back}; nil if the error was stored
    def receive(child)
      number = Native.deliver(@scheduler, @fiber, child.error) if @fiber && !@ending && !ended?
      number ? note_received(child, number) : @late_error ||= child.error
      number
    end

    # Cancels {#receive}, because the error is raised by other means.
    #
    # @param number [Integer] what {#receive} returned
    # @return [Boolean] false if the error has been raised already
    def take_back(number)
      Native.retract(@scheduler, @fiber, number)
    end

    # Sends the task's error to the parent.
    def propagate
      @delivery = @parent&.receive(self)
    end

    # Cancels {#propagate}, because the error is raised by other means.
    #
    # @return [Boolean] false if the error has been raised already, or was not sent
    def retract
      retracted = @delivery && @parent.take_back(@delivery)
      @delivery = nil
      retracted || false
    end

    private

    def finish(value, error)
      reset_after_fork(@scheduler)
      late = end_children
      failure = error || late
      Native.count_failure(@scheduler) if failure
      conclude(value, failure)
    ensure
      # A signal, or the fiber's being killed, has broken off the wait for the children.
      end_without_waiting unless ended?
    end

    # Ends the task without waiting for the children.
    def end_without_waiting
      stop_children
      conclude(nil, nil)
    end

    def conclude(value, error)
      @value = value unless error
      @error = error
      @end_number = Task.next_end_number
      @ended = true
      claims = @waits.map { |wait| wait.ended(self) }
      @waits.clear
      @parent&.remove(self)
      return @group.ended(self) if @group

      propagate if @error && claims.none?
    end

    def stop_children
      # Iterates over a copy, because children remove themselves.
      @children.keys.each(&:stop) # rubocop:disable Style/HashEachMethods
    end

    def forget_children
      [@children, *@enclosing].each(&:clear)
    end

    def wait_for_children
      @scheduler.block(self, nil) until @children.empty?
    rescue SignalException
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException -- raised when the children have ended
      # As in an `ensure` clause it takes the place of a child's error. An `exit` in a signal's handler stays.
      @late_error = e unless @late_error.is_a?(SystemExit)
      retry
    end

    def take_late_error
      @late_error.tap { @late_error = nil }
    end

    # An error of a scope's child is meant for the scope alone; see {#drop_received}. Errors are raised in the order
    # of their receipt. Those that have been raised are forgotten.
    def note_received(child, number)
      return unless child.depth.positive?

      @received ||= []
      @received.shift until @received.empty? || Native.unraised?(@scheduler, @fiber, @received.first.last)
      @received.push([child.depth, number])
    end

    # A scope of this depth ends, perhaps by another error: the errors of its children that have not been raised are
    # dropped.
    def drop_received(depth)
      dropped, @received = @received&.partition { |other, _| other >= depth }
      dropped&.each { |received| take_back(received.last) }
    end
  end
  private_constant :Task
end
