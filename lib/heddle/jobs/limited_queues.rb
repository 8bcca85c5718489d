# frozen_string_literal: true

module Heddle
  # What job runners need.
  module Jobs
    # Limits how many jobs of a queue run at a time. Jobs beyond the limit take no fiber of the executor.
    class LimitedQueues
      # @param executor [Executor]
      # @param limits [Hash{String, Symbol => Integer}] the queues without a limit are left out
      # @raise [ArgumentError, TypeError] for a limit that is not an Integer of at least 1
      def initialize(executor, limits)
        @executor = executor
        @limits = limits.to_h do |queue, limit|
          [queue.to_s, ArgumentChecks.count(limit, "HeddleAdapter.new: limits[#{queue.inspect}]")]
        end
        reset
      end

      # Runs the job, or queues it.
      #
      # @param queue [String]
      # @yield the job
      # @return [void]
      def post(queue, &job)
        limit = @limits[queue.to_s]
        return @executor.post(&job) unless limit

        reset unless @generation == Scheduler.__send__(:generation)
        start(queue.to_s, job) if enter?(queue.to_s, limit, job)
      end

      # Forgets the jobs that wait because of a limit.
      def clear
        @guard.synchronize { @waiting.clear }
      end

      private

      # A forked child has none of its parent's jobs.
      def reset
        @generation = Scheduler.__send__(:generation)
        @guard = Guard.new
        @running = Hash.new(0)
        @waiting = Hash.new { |waiting, queue| waiting[queue] = [] }
      end

      # Whether the job may run now; else it waits.
      def enter?(queue, limit, job)
        @guard.synchronize do
          next @running[queue] += 1 if @running[queue] < limit

          @waiting[queue] << job
          false
        end
      end

      def start(queue, job)
        @executor.post do
          job.call
        ensure
          leave(queue)
        end
      end

      # The next job of the queue gets the place of the one that has ended. A child that the job forked has no such job.
      def leave(queue)
        return unless @generation == Scheduler.__send__(:generation)

        job = @guard.synchronize do
          @waiting[queue].shift.tap { |waiting| @running[queue] -= 1 unless waiting }
        end
        start(queue, job) if job
      end
    end
  end
end
