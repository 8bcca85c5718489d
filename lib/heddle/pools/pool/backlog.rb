# frozen_string_literal: true

module Heddle
  class Pool
    # The jobs that no thread has started, and the threads that wait for one.
    class Backlog
      # @param guard [Guard] the pool's
      def initialize(guard)
        @guard = guard
        @jobs = {}
        @idle = []
        @unfinished = 0
        @closed = false
      end

      # @return [Integer] the number of jobs that have not ended
      attr_reader :unfinished

      # Adds a job.
      #
      # @yield is called within the same critical section
      def push(job)
        @guard.synchronize do
          yield
          @jobs[job] = true
          @unfinished += 1
          wake_all
        end
      end

      # Takes back a job whose thread is being killed, and that has not begun.
      def put_back(job)
        @guard.synchronize do
          job.untaken
          @jobs[job] = true
          wake_all
        end
      end

      # Waits for a job, and takes it.
      #
      # @return [Job, nil] nil if the backlog is closed and all jobs have ended
      def take
        until (taken = @guard.synchronize { take_now })
          waiter = Waiter.new
          @guard.synchronize { @jobs.empty? && !finished? ? @idle << waiter : waiter.wake }
          waiter.wait
        end
        taken unless taken == :finished
      end

      # Removes a job that has not started. Call it within the guard.
      #
      # @return [Job, nil] the job; nil if it has started
      def withdraw(job)
        @jobs.delete(job) && job
      end

      # A job has ended. Call it within the guard, and {#wake_at_end} after it.
      def ended
        @unfinished -= 1
      end

      # Lets the threads of a closed backlog end.
      def wake_at_end
        wake if @closed
      end

      # From now on, only jobs add jobs.
      def close
        @closed = true
        wake
      end

      def closed? = @closed

      private

      def wake
        @guard.synchronize { wake_all }
      end

      # If only one thread was woken, it could be busy with other fibers while another one is idle.
      def wake_all
        @idle.each(&:wake).clear
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
