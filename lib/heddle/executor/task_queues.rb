# frozen_string_literal: true

module Heddle
  class Executor
    # What an executor does in one process: its queues, one for each scheduler, and its counters. Any thread may call
    # its methods.
    class TaskQueues
      # @param limit [Integer] how many tasks of a queue run at a time
      # @param max_queue [Integer]
      # @param name [String, nil]
      # @param options [Hash] for the scheduler of the executor's own thread
      def initialize(limit:, max_queue:, name:, options:)
        @limit = limit
        @max_queue = max_queue
        @name = name
        @options = options
        @generation = Native.generation
        @guard = Guard.new
        @by_scheduler = {}.compare_by_identity
        @termination = Waiter.new
        @open = true
        @scheduled = @completed = 0
      end

      # @return [Guard]
      attr_reader :guard
      # @return [Integer]
      attr_reader :limit, :scheduled, :completed

      # @return [Integer]
      def running = all.sum(&:running)

      # @return [Integer]
      def waiting = all.sum { |queue| queue.waiting.size }

      # @param scheduler [Object, nil] that of the calling fiber
      # @return [Integer] how many more of its tasks fit into the queue
      def room(scheduler)
        @guard.synchronize do
          queue = own?(scheduler) ? @own : @by_scheduler[scheduler]
          queue ? room_in(queue).clamp(0, @max_queue) : @max_queue
        end
      end

      # @return [Boolean] false in a forked child of the process that made this
      def current? = @generation == Native.generation

      # @return [Boolean] whether tasks are taken
      def open? = @open

      # @return [Boolean] whether {#kill} was called
      def killed? = @killed || false

      # @return [Boolean] whether no tasks are taken, and all have ended
      def terminated? = @terminated || false

      # Waits until {#terminated?}.
      #
      # @return [Boolean] false after the timeout
      def wait(timeout) = @termination.wait(timeout)

      # Queues a task.
      #
      # @param scheduler [Object, nil] that of the calling fiber
      # @param entry [Array]
      # @return [TaskQueue, nil] nil if the task is refused
      def post(scheduler, entry)
        @guard.synchronize do
          next unless @open

          queue = queue_for(scheduler)
          next if @max_queue.positive? && !room_in(queue).positive?

          add(queue, entry)
        end
      end

      # Queues a task in the place of the current fiber's, which is about to end.
      #
      # @param entry [Array]
      # @return [TaskQueue, nil] nil if no task may begin any more, or the current fiber runs none
      def replace(entry)
        @guard.synchronize do
          queue = all.find { |each| each.fibers.key?(Fiber.current) } unless @killed
          add(queue, entry) if queue
        end
      end

      # A task has ended; the block stops counting it.
      #
      # @param abandon [Boolean] whether the queue's other tasks cannot be run any more
      def ended(queue, abandon:)
        @guard.synchronize do
          yield
          @completed += 1
          queue.waiting.clear if abandon
        end
      end

      # Forgets queues that have nothing to do.
      def settle
        @guard.synchronize { terminate_if_done }
      end

      # The executor's own thread has ended.
      def thread_ended(queue)
        @guard.synchronize do
          # A thread that could not begin leaves its tasks to the thread that the next task starts.
          queue.waiting.clear unless @open
          @own = nil if queue.equal?(@own) && queue.empty?
          terminate_if_done
        end
      end

      # Takes no further tasks.
      def shutdown
        @guard.synchronize { close_queues }
      end

      # Takes no further tasks, forgets those that wait, and tells the running ones to end.
      def kill
        queues = @guard.synchronize do
          @killed = true
          all.each { |queue| queue.waiting.clear }
          close_queues
          all
        end
        queues.each(&:stop)
      end

      private

      # Those that can start at once count, too: they wait until the queue starts them.
      def room_in(queue) = @limit + @max_queue - queue.running - queue.waiting.size

      def all = [*@by_scheduler.values, *@own]

      def add(queue, entry)
        queue.waiting << entry
        @scheduled += 1
        queue
      end

      def own?(scheduler) = !scheduler.is_a?(Scheduler) || @own&.scheduler.equal?(scheduler)

      def queue_for(scheduler)
        return own_queue if own?(scheduler)

        @by_scheduler[scheduler] ||= TaskQueue.new(self, scheduler)
      end

      def own_queue
        @own ||= ThreadTaskQueue.new(self, @name, @options)
        @own.start_thread unless @own.alive?
        @own
      end

      def close_queues
        @open = false
        # The thread could not begin, and has left tasks.
        @own.start_thread if @own && !@own.alive? && !@own.waiting.empty?
        @own = nil unless @own&.alive?
        @own&.close
        terminate_if_done
      end

      # A queue may be empty whose fiber still is to look for the task that it has posted: another one has started or
      # cleared that.
      def terminate_if_done
        @by_scheduler.delete_if { |_, queue| queue.empty? }
        return if @open || @own || !@by_scheduler.empty? || @terminated

        @terminated = true
        @termination.wake
      end
    end
    private_constant :TaskQueues
  end
end
