# frozen_string_literal: true

require_relative "task/children"
require_relative "task/error_propagation"
require_relative "task/lookup"

module Heddle
  # A fiber's place in the tree of fibers: its parent, its children, the waits for its end, and its result.
  #
  # A fiber gets a task when it is spun, when it spins other fibers, or when another fiber awaits it. Only {#stop} may
  # be called on another thread than the fiber's.
  class Task
    extend Lookup
    include Children
    include ErrorPropagation

    # @return [Fiber, nil] nil for a root that has not called Heddle yet
    attr_accessor :fiber
    # @return [Proc, nil] the program's block
    attr_accessor :block
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
    def initialize(scheduler, parent: nil, group: nil, name: nil)
      @scheduler = scheduler
      @parent = parent
      @group = group
      @name = Names.convert(name)
      # A Hash keeps the order, and deletes in constant time.
      @children = {}
      @waits = []
      @generation = Scheduler.__send__(:generation)
    end

    # Makes this the fiber's task.
    def assign_to(fiber)
      @fiber = fiber
      Task.assign(fiber, self)
      Names.assign(fiber, @name) if @name
    end

    # Makes a fiber that runs the block, and puts it into the run queue.
    #
    # @return [Fiber]
    def start(*arguments, &block)
      @block = block
      Heddle.without_preemption do
        @parent&.add(self)
        carried = -> { carry { block.call(*arguments) } }
        assign_to(@scheduler.__send__(:spawn, carried, self, FiberBody.for(@scheduler)))
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
        @scheduler.__send__(:raise_deferred)
        value = @scheduler.__send__(:run_user_block) { yield } # rubocop:disable Style/ExplicitBlockArgument -- keeps its self
        # Raises what children sent to this fiber while it did not wait.
        @scheduler.__send__(:raise_deferred)
      rescue Stop, SignalException => e
        # A fiber that was told to end has no error. A signal is raised again, below.
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

    # Tells the fiber to end, and does not wait for that. Any thread may call this.
    #
    # @return [Boolean] false if the scheduler does not know the fiber
    def stop
      @scheduler.__send__(:stop, @fiber)
    end

    # @return [Boolean]
    def ended? = @ended || false

    # Calls `wait.ended(task)` at the task's end, or now if the task has ended.
    #
    # @param wait [TaskWait]
    def await(wait)
      # In this order, because the fiber may be preempted in between.
      @waits << wait
      wait.ended(self) if ended?
    end

    # Takes back {#await}.
    def forget(wait) = @waits.delete(wait)

    # In a forked child, drops the parent and the children: those fibers exist in the parent process only.
    def reset_after_fork(scheduler)
      return if @generation == Scheduler.__send__(:generation)

      @generation = Scheduler.__send__(:generation)
      @scheduler = scheduler
      @parent = nil
      forget_children
      @waits.clear
    end

    private

    def finish(value, error)
      reset_after_fork(@scheduler)
      late = end_children
      failure = error || late
      @scheduler.__send__(:count_failure) if failure
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
  end
  private_constant :Task
end
