# frozen_string_literal: true

module Heddle
  class Pool
    # The jobs that nobody has begun, and the threads that wait for one.
    class Backlog
      def initialize(guard)
        @guard = guard
        @jobs = {}
        @idle = []
        @unfinished = 0
        @closed = false
      end

      # @return [Integer] how many jobs have not ended
      attr_reader :unfinished

      # Adds a job; the block is called in the same breath.
      def push(job)
        @guard.synchronize do
          yield
          @jobs[job] = true
          @unfinished += 1
        end
        wake
      end

      # Waits for a job.
      #
      # @return [Job, nil] nil when there will be none
      def take
        until (taken = @guard.synchronize { take_now })
          waiter = Waiter.new
          @guard.synchronize { @jobs.empty? && !finished? ? @idle << waiter : waiter.wake }
          waiter.wait
        end
        taken unless taken == :finished
      end

      # To be called within the guard.
      #
      # @return [Job, nil] the job, if nobody has begun it
      def withdraw(job)
        @jobs.delete(job) && job
      end

      # A job has ended.
      def ended
        @guard.synchronize { @unfinished -= 1 }
        wake if @closed
      end

      # Nothing more comes but from jobs that are there.
      def close
        @closed = true
        wake
      end

      def closed? = @closed

      private

      # All of them: who is woken may be busy when its turn comes, and another one not.
      def wake
        @guard.synchronize { @idle.each(&:wake).clear }
      end

      def take_now
        job, = @jobs.shift
        job&.taken
        job || (:finished if finished?)
      end

      def finished?
        @closed && @unfinished.zero?
      end
    end
    private_constant :Backlog
  end
end
