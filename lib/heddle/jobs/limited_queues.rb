# frozen_string_literal: true

module Heddle
  # What job runners need.
  module Jobs
    # Limits how many jobs of a queue run at a time. Jobs beyond the limit take no fiber of the executor.
    #
    # A job takes nothing along from the fiber that posts it, or from the job whose place it gets; see {WorkContext}.
    #
    # For one process: a forked child has none of its parent's jobs.
    class LimitedQueues
      # @param executor [Executor]
      # @param limits [Hash{String, Symbol => Integer}] the queues without a limit are left out
      # @raise [ArgumentError, TypeError] for a limit that is not an Integer of at least 1
      def initialize(executor, limits)
        @executor = executor
        @limits = limits.to_h do |queue, limit|
          [queue.to_s, ArgumentChecks.count(limit, "HeddleAdapter.new: limits[#{queue.inspect}]")]
        end
        @guard = Guard.new
        @running = Hash.new(0)
        @waiting = Hash.new { |waiting, queue| waiting[queue] = [] }
        @generation = Native.generation
      end

      # Runs the job, or queues it.
      #
      # @param queue [String]
      # @yield the job
      # @return [Boolean] false if the executor discards the job
      # @raise (see Executor#post)
      def post(queue, &job)
        limit = @limits[queue = queue.to_s]
        return @executor.post_detached(&job) unless limit

        return true unless enter?(queue, limit, job)

        start(queue, job).tap { |taken| start_stuck(queue, limit) if taken }
      end

      # @return [Integer] how many jobs wait because of a limit
      def waiting = @guard.synchronize { @waiting.sum { |_, jobs| jobs.size } }

      # Forgets the jobs that wait because of a limit.
      def clear
        @guard.synchronize { @waiting.clear }
      end

      private

      # Whether the job may run now; else it waits.
      def enter?(queue, limit, job)
        @guard.synchronize do
          next @running[queue] += 1 if @running[queue] < limit

          @waiting[queue] << job
          false
        end
      end

      # Posts a job that has a place. The place is given back if the executor refuses the job, or has no thread for it.
      # An error of the job itself comes here, too, if the job runs in this fiber; then {#run} has given the place back.
      def start(queue, job)
        @executor.post_detached { run(queue, job) }.tap { |taken| give_back(queue) unless taken }
      rescue Concurrent::RejectedExecutionError, ThreadError
        give_back(queue)
        raise
      end

      def give_back(queue) = @guard.synchronize { @running[queue] -= 1 }

      def run(queue, job)
        job.call
      ensure
        leave(queue)
      end

      # The next job of the queue gets the place of the one that has ended. A child that the job forked has no such job.
      def leave(queue)
        return unless @generation == Native.generation

        job = @guard.synchronize do
          @waiting[queue].shift.tap { |waiting| @running[queue] -= 1 unless waiting }
        end
        return if job.nil? || @executor.replace { run(queue, job) }

        @guard.synchronize do
          @running[queue] -= 1
          @waiting[queue].unshift(job)
        end
      end

      # If a job has run in the fiber that posted it, as after the executor's shutdown, the next job can replace no task
      # of the executor. Nested calls would use up the stack, so the jobs run here one after the other.
      def start_stuck(queue, limit)
        while (job = @guard.synchronize { take_stuck(queue, limit) })
          start(queue, job)
        end
      end

      def take_stuck(queue, limit)
        return if @waiting[queue].empty? || @running[queue] >= limit

        @running[queue] += 1
        @waiting[queue].shift
      end
    end
  end
end
