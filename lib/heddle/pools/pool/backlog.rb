# frozen_string_literal: true

module Heddle
  class Pool
    # The jobs that no thread has started, and the threads that wait for one.
    class Backlog
      # @param guard [Guard] the pool's
      def initialize(guard)
        @guard = guard
        @jobs = {}
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
        taken = nil
        while (waiter = @guard.synchronize { (taken = take_now) ? nil : @waiter ||= Waiter.new })
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

      # A job has ended. If it is the last one of a closed backlog, the threads end. Call it within the guard.
      def ended
        @unfinished -= 1
        wake_all if finished?
      end

      # From now on, only jobs add jobs.
      def close
        @guard.synchronize do
          @closed = true
          wake_all
        end
      end

      def closed? = @closed

      private

      # If only one thread was woken, it could be busy with other fibers while another one is idle.
      def wake_all
        @waiter&.wake
        @waiter = nil
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
