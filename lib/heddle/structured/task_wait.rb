# frozen_string_literal: true

module Heddle
  # One fiber's wait for the end of several tasks. {Pool::JobWait} does the same for jobs, across threads.
  class TaskWait
    # @return [Task, nil] the task that ended first
    attr_reader :first
    # @return [Task, nil] the first task that failed
    attr_reader :failed

    # @param scheduler [Scheduler]
    # @param owner [Task] the waiting fiber's task
    # @param tasks [Array<Task>]
    def initialize(scheduler, owner, tasks)
      @scheduler = scheduler
      @pending = tasks.to_h { |task| [task, true] }
      @fiber = Fiber.current
      @owner = owner
      @claimed = []
    end

    # @return [Array<Fiber>] the fibers that have not ended
    def fibers = @pending.keys.map(&:fiber)

    # Waits until the condition holds.
    #
    # @yieldparam wait [TaskWait] this
    # @yieldreturn [Boolean] the condition
    def until
      # Tasks may end, and leave the Hash, meanwhile. That is allowed while it is iterated over.
      @pending.each_key { |task| task.await(self) }
      record_ended(@pending.keys.select(&:ended?))
      @scheduler.block(self, nil) until yield(self)
      @settled = true
    ensure
      release
    end

    # @return [Boolean] whether all tasks have ended
    def all?
      @pending.empty?
    end

    # @return [Boolean] whether the task is the owner's child, so that this wait raises its error in the parent
    def claims?(task) = task.parent.equal?(@owner)

    # A task has ended.
    #
    # @return [Boolean] see {#claims?}
    def ended(task) # rubocop:disable Naming/PredicateMethod -- it is an action
      if record(task)
        @claimed << task if claims?(task) && task.error
        wake
      end
      claims?(task)
    end

    # Sends the claimed errors to the parent after all, except that of `task`, which the caller raises.
    #
    # @param task [Task, nil]
    def propagate_all_but(task)
      @claimed.each { |other| other.propagate unless other.equal?(task) }
    end

    # Tells the remaining tasks to end, and waits for that.
    def stop_rest
      return if all?

      Native.defer_raises(@scheduler) do
        @pending.each_key(&:stop)
        TaskWait.new(@scheduler, @owner, @pending.keys).until(&:all?)
      end
    end

    private

    # Records tasks that had ended before {Task#await} was called: the fiber may have been preempted until then.
    def record_ended(ended)
      ended.sort_by(&:end_number).each { |task| record(task) }
      # This wait raises the errors that are on their way to this fiber. They must not be raised twice.
      @claimed.concat(ended.select { |task| claims?(task) && task.retract })
    end

    # If the wait was broken off, sends the claimed errors to the parent after all.
    def release
      @pending.each_key { |task| task.forget(self) }
      propagate_all_but(nil) unless @settled
    end

    def wake = @scheduler.unblock(self, @fiber)

    def record(task)
      return unless @pending.delete(task)

      @first ||= task
      @failed ||= task if task.error
      true
    end
  end
  private_constant :TaskWait
end
