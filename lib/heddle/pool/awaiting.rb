# frozen_string_literal: true

module Heddle
  class Pool
    # A fiber, or a thread without fibers, waits for the end of jobs.
    class Awaiting
      # @param owner [Job, nil] who waits
      def initialize(pool, owner, jobs)
        @pool = pool
        @owner = owner
        @jobs = jobs
        @pending = {}
        @claimed = []
        @waiter = Waiter.new
      end

      # @return [Array] the values
      # @raise the first error, when the rest has ended
      def call
        wait { @failed || @pending.empty? }
        if (failed = @failed)
          Heddle.shield { Awaiting.new(@pool, @owner, @jobs).stop }
        end
        @pool.guard.synchronize { @jobs.each { |job| @pool.forget(job) } }
        raise failed.error if failed

        @jobs.map(&:value)
      end

      # Tells all to end, and waits for it.
      #
      # @return [Job, nil] the first that failed
      def stop
        @jobs.each { |job| job.stop unless job.ended? }
        wait { @pending.empty? }
        @failed
      end

      # @return [Boolean] whether the error is raised in the job's parent by this
      def ended(job)
        ours = job.parent.equal?(@owner)
        @pool.guard.synchronize do
          note(job)
          @claimed << job if ours && job.error
        end
        ours
      end

      private

      def wait(&enough)
        @enough = enough
        register
        @waiter.wait
        @settled = true
      ensure
        release
      end

      # What has failed meanwhile, and is not going to be raised here, goes to the parent after all.
      def release
        @jobs.each { |job| job.forget(self) }
        @claimed.each(&:hand_up) unless @settled
      end

      def register
        @pool.guard.synchronize { @jobs.each { |job| @pending[job] = true } }
        @jobs.each do |job|
          job.retract if job.parent.equal?(@owner) && job.ended?
          @pool.guard.synchronize { note(job) } if job.await(self)
        end
        @pool.guard.synchronize { @waiter.wake if @enough.call }
      end

      def note(job)
        return unless @pending.delete(job)

        @failed ||= job if job.error
        @waiter.wake if @enough.call
      end
    end
    private_constant :Awaiting
  end
end
