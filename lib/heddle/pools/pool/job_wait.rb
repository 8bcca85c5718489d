# frozen_string_literal: true

module Heddle
  class Pool
    # The wait of a fiber, or of a thread without fibers, for the end of several jobs.
    class JobWait
      # @param pool [Pool]
      # @param owner [Job, nil] the waiting job; nil outside of the pool's jobs
      # @param jobs [Array<Job>]
      def initialize(pool, owner, jobs)
        @pool = pool
        @owner = owner
        @jobs = jobs
        @pending = {}
        @claimed = []
        @waiter = Waiter.new
      end

      # @return [Array<Object>] the jobs' values
      # @raise the first error, when the other jobs have ended
      def call
        wait { @failed || @pending.empty? }
        if (failed = @failed)
          Heddle.shield { JobWait.new(@pool, @owner, @jobs).stop }
        end
        @pool.awaited(@jobs)
        raise failed.error if failed

        @jobs.map(&:value)
      end

      # Stops all jobs, and waits for their end.
      #
      # @return [Job, nil] the first job that failed
      def stop
        @jobs.each { |job| job.terminate unless job.ended? }
        wait { @pending.empty? }
        @failed
      end

      # A job has ended.
      #
      # @return [Boolean] whether the job is the owner's child, so that this wait raises its error in the parent
      def ended(job)
        own_child = job.parent.equal?(@owner)
        @pool.guard.synchronize do
          record(job)
          @claimed << job if own_child && job.error
        end
        own_child
      end

      private

      def wait(&condition)
        @condition = condition
        register
        @waiter.wait
        @settled = true
      ensure
        release
      end

      # If the wait was broken off, sends the claimed errors to the parent after all.
      def release
        @jobs.each { |job| job.forget(self) }
        @claimed.each(&:propagate) unless @settled
      end

      def register
        @pool.guard.synchronize { @jobs.each { |job| @pending[job] = true } }
        @jobs.each do |job|
          job.retract if job.parent.equal?(@owner) && job.ended?
          @pool.guard.synchronize { record(job) } if job.notify(self)
        end
        @pool.guard.synchronize { @waiter.wake if @condition.call }
      end

      def record(job)
        return unless @pending.delete(job)

        @failed ||= job if job.error
        @waiter.wake if @condition.call
      end
    end
    private_constant :JobWait
  end
end
