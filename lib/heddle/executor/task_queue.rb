# frozen_string_literal: true

module Heddle
  class Executor
    # The tasks of one scheduler: those that wait, and the fibers of those that run. Its methods are called on the
    # scheduler's thread, unless their comments say otherwise.
    class TaskQueue
      # @return [Array] the tasks that wait; guarded by the queues' guard
      attr_reader :waiting
      # @return [Hash{Fiber => true}] the tasks that run; guarded by the queues' guard
      attr_reader :fibers
      # @return [Scheduler, nil] nil until the executor's own thread has one
      attr_reader :scheduler

      # @param queues [TaskQueues]
      # @param scheduler [Scheduler]
      def initialize(queues, scheduler)
        @queues = queues
        @guard = queues.guard
        @scheduler = scheduler
        @waiting = []
        @fibers = {}.compare_by_identity
        @starting = 0
      end

      # @return [Integer] how many tasks have begun, or are about to
      def running = @fibers.size + @starting

      # @return [Boolean] whether there is nothing left to do
      def empty? = @waiting.empty? && running.zero?

      # Starts waiting tasks. The caller is a fiber of the queue's scheduler.
      def wake = start_tasks

      # Tells the running tasks to end. Any thread may call this.
      def stop
        @fibers.keys.each { |fiber| Native.stop(@scheduler, fiber) } # rubocop:disable Style/HashEachMethods -- a copy
      end

      private

      # An exception for the calling fiber is deferred: it must not lose the task that was taken.
      def start_tasks
        Native.defer_raises(@scheduler) do
          while (entry = @guard.synchronize { take })
            start(entry)
          end
        end
      end

      # Takes the next task, if it may start. Called with the guard.
      #
      # @return [Array(Proc, Array, Hash), nil] the task, its arguments and its fiber's storage
      def take
        return if running >= @queues.limit || @waiting.empty?

        @starting += 1
        @waiting.shift
      end

      # Gives back a task that has not started. Called with the guard.
      #
      # @return [Boolean] whether no task runs that could start it later
      def give_back(entry) # rubocop:disable Naming/PredicateMethod -- it is an action
        @starting -= 1
        return true if running.zero?

        @waiting.unshift(entry)
        false
      end

      # The fiber that starts a task may be one that has posted it, or one whose own task has ended: the new fiber has
      # nothing to do with it, nor with the scope that it is in.
      def start(entry)
        begun = false
        work = proc do
          begun = true
          run(*entry.first(2))
        end
        Native.start_apart(@scheduler, entry.last, work)
      rescue FiberError, NoMemoryError
        # Without memory for another fiber the task waits for the end of those that run.
        raise if begun || @guard.synchronize { give_back(entry) }
      end

      # Only the task may be preempted: {#stop} would raise in the fiber before `ensure` has counted its end.
      def run(task, arguments)
        Heddle.without_preemption do
          call(task, arguments) if @guard.synchronize { count_in }
        ensure
          ended
        end
      end

      def call(task, arguments)
        Native.run_user_block(@scheduler, true) do
          # A new fiber runs at once. The caller's goes first.
          @scheduler.yield
          task.call(*arguments)
        end
      rescue StandardError => e
        ErrorLog.debug(e)
      rescue Stop, SignalException
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- as in concurrent-ruby, a task ends no thread
        ErrorLog.error(e)
      end

      # @return [Boolean] false if the executor was killed after the task had been taken: {#stop} has not seen it
      def count_in # rubocop:disable Naming/PredicateMethod -- it is an action
        @starting -= 1
        @fibers[Fiber.current] = true
        !@queues.killed?
      end

      # A thread that is killed starts no further tasks, and neither does a child that was forked by a task.
      def ended
        return unless @queues.current?

        Native.defer_raises(@scheduler) do
          @queues.ended(self, abandon: ThreadStatus.thread_aborting?) { @fibers.delete(Fiber.current) }
          start_tasks
          @queues.settle
        end
      end
    end
    private_constant :TaskQueue

    # The tasks of the executor's own thread.
    class ThreadTaskQueue < TaskQueue
      # @param queues [TaskQueues]
      # @param name [String, nil]
      # @param options [Hash] for the scheduler
      def initialize(queues, name, options)
        super(queues, nil)
        @name = name
        @options = options
        @wake_ups = Thread::Queue.new
      end

      # @return [Boolean] whether the thread runs
      def alive? = @thread&.alive? || false

      # Called with the guard, on any thread.
      def start_thread
        @thread = WorkContext.thread(@name || "Heddle::Executor", HostThread) { serve }
      end

      # Wakes the thread, which then starts tasks. Any thread may call this.
      def wake
        @wake_ups.push(true)
      rescue ClosedQueueError
        # The executor has been shut down. The thread looks for tasks once more before it ends.
        nil
      end

      # The thread ends when its tasks have ended. Any thread may call this.
      def close = @wake_ups.close

      private

      def serve
        Heddle.run(**@options) do
          @scheduler = Fiber.scheduler
          start_tasks while @wake_ups.pop
          start_tasks
        end
      ensure
        @fibers.clear
        @queues.thread_ended(self)
      end
    end
    private_constant :ThreadTaskQueue
  end
end
