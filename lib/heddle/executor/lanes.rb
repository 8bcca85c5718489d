# frozen_string_literal: true

module Heddle
  class Executor
    # What an executor does in one process: its lanes, one for each scheduler, and its counters. Any thread may call its
    # methods.
    class Lanes
      # @param fibers [Integer]
      # @param max_queue [Integer]
      # @param name [String, nil]
      # @param options [Hash] for the scheduler of the executor's own thread
      def initialize(fibers:, max_queue:, name:, options:)
        @fibers = fibers
        @max_queue = max_queue
        @name = name
        @options = options
        @generation = Native.generation
        @guard = Guard.new
        @by_scheduler = {}.compare_by_identity
        @termination = WaitGroup.new(1)
        @open = true
        @scheduled = @completed = 0
      end

      # @return [Integer]
      attr_reader :scheduled, :completed

      # @return [Integer]
      def running = all.sum(&:running)

      # @return [Integer]
      def waiting = all.sum { |lane| lane.waiting.size }

      # @param scheduler [Object, nil] that of the calling fiber
      # @return [Integer] how many more of its tasks fit into the queue
      def room(scheduler)
        @guard.synchronize do
          lane = own?(scheduler) ? @own : @by_scheduler[scheduler]
          lane ? room_in(lane).clamp(0, @max_queue) : @max_queue
        end
      end

      # @return [Boolean] false in a forked child of the process that made this
      def current? = @generation == Native.generation

      # @return [Boolean] whether tasks are taken
      def open? = @open

      # @return [Boolean] whether no tasks are taken, and all have ended
      def terminated? = @terminated || false

      # Waits until {#terminated?}.
      #
      # @return [Boolean] false after the timeout
      def wait(timeout) = @termination.wait(timeout:)

      # Queues a task.
      #
      # @param scheduler [Object, nil] that of the calling fiber
      # @param entry [Array]
      # @return [Lane, nil] nil if the task is refused
      def post(scheduler, entry)
        @guard.synchronize do
          next unless @open

          lane = lane_for(scheduler)
          next if @max_queue.positive? && !room_in(lane).positive?

          add(lane, entry)
        end
      end

      # Queues a task in the place of the current fiber's, which is about to end.
      #
      # @param entry [Array]
      # @return [Lane, nil] nil if no task may begin any more, or the current fiber runs none
      def replace(entry)
        @guard.synchronize do
          lane = all.find { |each| each.fibers.key?(Fiber.current) } unless @killed
          add(lane, entry) if lane
        end
      end

      # @return [Array, nil] the lane's next task, if it may start
      def take(lane)
        @guard.synchronize { lane.take(@fibers) }
      end

      # @return [Boolean] whether the task is lost, as no running task could start it later
      def put_back(lane, entry)
        @guard.synchronize { lane.give_back(entry) }
      end

      # A task begins; the block counts it.
      def begun(&) = @guard.synchronize(&)

      # A task has ended; the block stops counting it.
      #
      # @param abandon [Boolean] whether the lane's other tasks cannot be run any more
      def ended(lane, abandon:)
        @guard.synchronize do
          yield
          @completed += 1
          lane.waiting.clear if abandon
        end
      end

      # Forgets a lane that has nothing to do.
      def settle(lane)
        @guard.synchronize do
          @by_scheduler.delete(lane.scheduler) if lane.empty? && !lane.equal?(@own)
          terminate_if_done
        end
      end

      # The executor's own thread has ended.
      def thread_ended(lane)
        @guard.synchronize do
          # A thread that could not begin leaves its tasks to the thread that the next task starts.
          lane.waiting.clear unless @open
          @own = nil if lane.equal?(@own) && lane.empty?
          terminate_if_done
        end
      end

      # Takes no further tasks.
      def shutdown
        @guard.synchronize { close_lanes }
      end

      # Takes no further tasks, forgets those that wait, and tells the running ones to end.
      def kill
        lanes = @guard.synchronize do
          @killed = true
          all.each { |lane| lane.waiting.clear }
          close_lanes
          all
        end
        lanes.each(&:stop)
      end

      private

      # Those that can start at once count, too: they wait in the queue until the lane starts them.
      def room_in(lane) = @fibers + @max_queue - lane.running - lane.waiting.size

      def all = [*@by_scheduler.values, *@own]

      def add(lane, entry)
        lane.waiting << entry
        @scheduled += 1
        lane
      end

      def own?(scheduler) = !scheduler.is_a?(Scheduler) || @own&.scheduler.equal?(scheduler)

      def lane_for(scheduler)
        return own_lane if own?(scheduler)

        @by_scheduler[scheduler] ||= Lane.new(self, scheduler)
      end

      def own_lane
        @own ||= ThreadLane.new(self, @name, @options)
        @own.start_thread unless @own.alive?
        @own
      end

      def close_lanes
        @open = false
        # The thread could not begin, and has left tasks.
        @own.start_thread if @own && !@own.alive? && !@own.waiting.empty?
        @own = nil unless @own&.alive?
        @own&.close
        terminate_if_done
      end

      def terminate_if_done
        return if @open || @own || !@by_scheduler.empty? || @terminated

        @terminated = true
        @termination.done
      end
    end
    private_constant :Lanes
  end
end
