# frozen_string_literal: true

module Heddle
  class Pool
    # The wait of a fiber, or of a thread without fibers, for the end of several jobs, which run on other threads.
    class JobWait < TaskWait
      # @param pool [Pool]
      # @param owner [Job, nil] the waiting job; nil outside of the pool's jobs
      # @param jobs [Array<Job>]
      def initialize(pool, owner, jobs)
        super(nil, owner, jobs)
        @pool = pool
        @jobs = jobs
        @waiter = Waiter.new
      end

      # @return [Array<Object>] the jobs' values
      # @raise the first error, when the other jobs have ended
      def call
        self.until { @failed || all? }
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
        self.until { all? }
        @failed
      end

      # (see TaskWait#until)
      def until(&condition)
        @condition = condition
        @jobs.each { |job| register(job) }
        @pool.guard.synchronize { wake }
        @waiter.wait
        @settled = true
      ensure
        release
      end

      private

      def register(job)
        return unless job.notify(self)

        job.retract if claims?(job)
        @pool.guard.synchronize { record(job) }
      end

      def wake = (@waiter.wake if @condition.call)
    end
    private_constant :JobWait
  end
end
