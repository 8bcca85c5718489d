# frozen_string_literal: true

module Heddle
  module Jobs
    # Makes the processors of a Sidekiq capsule fibers. `require "heddle/sidekiq"` loads it.
    #
    # All processors of the capsule run on one thread, so hundreds of jobs can wait at the same time. A job that
    # computes is preempted. Fetching, retries, middleware, the heartbeat and shutdown stay Sidekiq's.
    #
    # @example
    #   Sidekiq.configure_server do |config|
    #     config.capsule("waiting") do |capsule|
    #       capsule.queues = %w[webhooks mails]
    #       capsule.concurrency = 200
    #       capsule.fibers!
    #     end
    #   end
    module SidekiqCapsule
      # Makes the capsule's processors fibers. Call it before Sidekiq starts.
      #
      # @param thread_variables [:own, :shared] whether each job has thread variables (`Thread#thread_variable_get`) of
      #   its own, as it may expect of a thread, or all share those of the capsule's thread
      # @param ** [Hash] for the scheduler; see {Heddle::Scheduler#initialize}. The default is `preempt: :all`.
      # @return [self]
      # @raise [ArgumentError, TypeError] for an invalid option
      # @raise [RuntimeError] if the capsule runs already
      def fibers!(thread_variables: :own, **)
        raise "Sidekiq::Capsule#fibers!: the capsule #{name.inspect} runs already" if @fiber_executor&.length&.positive?

        @thread_variables = UnitOfWork.check_option(thread_variables, "Sidekiq::Capsule#fibers!")
        @fiber_executor = Executor.new(on: :thread, name: "sidekiq.#{name}/fibers", **)
        self
      end

      # @return [Boolean] whether the capsule's processors are fibers
      def fibers? = !@fiber_executor.nil?

      # @api private
      # @return [Executor, nil]
      attr_reader :fiber_executor

      # @api private
      # @return [:own, :shared, nil]
      attr_reader :thread_variables

      # Sidekiq calls it when the capsule's jobs have ended or have been pushed back.
      #
      # @return [void]
      def stop
        super
        @fiber_executor&.kill
      end
    end
  end
end
