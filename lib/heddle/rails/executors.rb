# frozen_string_literal: true

module Heddle
  module RailsSupport
    # Where Rails and concurrent-ruby use thread pools, these modules put a {Executor}. Its tasks run beside the fiber
    # that posts them, on the same thread, and else on a thread of the executor.
    module Executors
      # While one of the executors is made.
      MAKING = Guard.new
      private_constant :MAKING

      # `load_async` and the other asynchronous queries, with `async_query_executor = :global_thread_pool`.
      module GlobalQueries
        # @api private
        def global_thread_pool_async_query_executor
          concurrency = global_executor_concurrency || 4
          @global_thread_pool_async_query_executor || MAKING.synchronize do
            @global_thread_pool_async_query_executor ||=
              Executor.new(fibers: concurrency, max_queue: concurrency * 4, fallback_policy: :caller_runs,
                           name: "load_async")
          end
        end
      end

      # The same with `:multi_thread_pool`.
      module PoolQueries
        private

        def build_async_executor
          return super unless ActiveRecord.async_query_executor == :multi_thread_pool && db_config.max_threads.positive?

          Executor.new(fibers: db_config.max_threads, max_queue: db_config.max_queue, fallback_policy: :caller_runs,
                       name: "load_async #{db_config.name}")
        end
      end

      # Action Cable's workers, which run channels' actions and callbacks.
      module CableWorker
        # @api private
        def initialize(max_size: 5)
          super
          # Concurrent's pool has started no thread.
          @executor = Executor.new(fibers: max_size, name: "ActionCable")
        end
      end

      # Action Cable's event loop passes what is received, and broadcasts, to this executor.
      module CableEvents
        FIBERS = 10
        private_constant :FIBERS

        # @api private
        def initialize
          super
          @executor = Executor.new(fibers: FIBERS, name: "ActionCable events")
        end
      end

      # `Concurrent::Promises`, futures and timers that name no executor use the one named `:io`.
      module GlobalIO
        # @api private
        def global_io_executor = Executors.io
      end

      # @return [Executor]
      def self.io = @io || MAKING.synchronize { @io ||= Executor.new(name: "io") }

      # @return [void]
      def self.install
        Concurrent.singleton_class.prepend(GlobalIO)
        ActiveSupport.on_load(:active_record) do
          ActiveRecord.singleton_class.prepend(GlobalQueries)
          ActiveRecord::ConnectionAdapters::ConnectionPool.prepend(PoolQueries)
        end
        ActiveSupport.on_load(:action_cable) do
          ActionCable::Server::Worker.prepend(CableWorker)
          ActionCable::Connection::StreamEventLoop.prepend(CableEvents)
        end
      end
    end
    private_constant :Executors
  end
end
