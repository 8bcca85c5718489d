# frozen_string_literal: true

module Heddle
  module Jobs
    # A Sidekiq processor that is a fiber, in the capsules that ask for it.
    module SidekiqProcessor
      # What a processor needs of a thread.
      class Handle
        # @param executor [Executor]
        def initialize(executor, &work)
          @executor = executor
          @done = Waiter.new
          executor.post_detached { run(work) }
        end

        # Raises an error in the fiber, whatever it waits for or computes. Any thread may call this.
        def raise(error)
          @executor.post_detached { Heddle.without_preemption { @fiber&.raise(error) } }
        rescue Concurrent::RejectedExecutionError
          # The capsule has stopped, so the fiber has been stopped.
          nil
        end

        # Waits for the fiber's end.
        def value = @done.wait && nil

        private

        def run(work)
          @fiber = Fiber.current
          # Sidekiq would derive it from the thread, and take all jobs of the thread for one.
          Thread.current["sidekiq_tid"] = (@fiber.object_id ^ Process.pid).to_s(36)
          work.call
          @fiber = nil
        rescue ::Sidekiq::Shutdown
          # It came when the processor had ended. As a SignalException it would end the thread.
          nil
        ensure
          @fiber = nil
          @done.wake
        end
      end
      private_constant :Handle

      # @api private
      def start
        return super unless capsule.fibers?

        # rubocop:disable-next Naming/MemoizedInstanceVariableName -- Sidekiq's own
        @thread ||= Handle.new(capsule.fiber_executor) { watchdog("#{capsule.name}/processor") { run } }
      end

      private

      # Sidekiq calls this for each job. Names the fiber while it runs the job. The job is a scope, within what retries
      # it: a child that fails lets the job fail.
      def dispatch(job, *others)
        return super unless capsule.fibers?

        UnitOfWork.run_job(capsule.thread_variables, log: logger.method(:warn)) do
          Heddle.annotate("#{job["wrapped"] || job["class"]} #{job["jid"]}") do
            super(job, *others) { |instance| UnitOfWork.in_scope { yield instance } }
          end
        end
      end
    end
  end
end
