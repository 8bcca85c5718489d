# frozen_string_literal: true

require "puma/thread_pool"

module Heddle
  module PumaSupport
    # Takes the place of `::Puma::ThreadPool`: a fiber for each connection instead of a thread for each request that is
    # being handled. It starts no threads, so of its superclass it keeps only the hooks (`before_thread_start`,
    # `before_thread_exit`, `out_of_band`) and the methods that make no sense here, such as `trim`.
    #
    # All methods are called on the server's thread, but for those that only read, and {#stop_accepting}.
    #
    # @api private
    class FiberPool < ::Puma::ThreadPool
      # @param name [String] the thread's name
      # @param options [#final_options, Hash] the server's
      # @param settings [Settings]
      # @yieldparam connection [Connection]
      # @yieldparam client [::Puma::Client]
      # @yieldreturn [Boolean] whether a request was handled
      def initialize(name, options, settings, **, &)
        options = options.final_options if options.respond_to?(:final_options)
        super(name, options.merge(min_threads: 0, max_threads: settings.fibers), **, &)
        @thread_variables = settings.thread_variables
        @connections = {}.compare_by_identity
        # The fibers in which ForceShutdown may be raised.
        @with_application = {}.compare_by_identity
        @hook_lock = Mutex.new
        @permits = Permits.new(@max)
        @accepting = true
        # What the acceptor and the shutdown wait for, respectively.
        @permit_released = Thread::Queue.new
        @connection_ended = Thread::Queue.new
        @lag_probe = LagProbe.new
      end

      # Prepares the server's thread.
      def start
        trigger_before_thread_start_hooks
        ThreadVariables.separate(Thread.current) if @thread_variables == :own
        @lag_probe.start
      end

      # Serves a connection that was accepted, or handles the request that a connection has received.
      #
      # @param client [::Puma::Client]
      # @return [self]
      # @raise [RuntimeError] for a new connection after {#shutdown}
      def <<(client)
        if (connection = @connections[client])
          connection.handle_next
        else
          raise "Unable to add work while shutting down" if @shutdown

          serve(client)
        end
        self
      end

      # @return [Connection]
      def connection(client)
        @connections.fetch(client)
      end

      # Runs the block in the connection's fiber, when one of the pool's permits is free.
      #
      # @param connection [Connection]
      # @param client [::Puma::Client]
      # @return [void]
      def handle(connection, client)
        # As Puma counts it: including this request.
        @permits.acquire { @backlog_max = [@backlog_max.to_i, backlog].max }
        begin
          # No request is handled while an `out_of_band` hook runs.
          @hook_lock.synchronize { nil } if @hook_lock.locked?
          handled = @block.call(connection, client)
        ensure
          @permits.release
          @permit_released << nil if @acceptor_waits
        end
        run_out_of_band_hook if handled
      end

      # The acceptor waits here until a further connection could be handled. Until then, the connection waits in the
      # kernel's backlog, where another worker process can accept it.
      def wait_until_not_full
        @acceptor_waits = true
        @permit_released.pop(timeout: 1) while full? && @accepting
      ensure
        @acceptor_waits = false
        @permit_released.clear
      end

      # Puma 7 and 8 call this one where Puma 6 calls {#wait_until_not_full}.
      def wait_while_out_of_band_running
        super if defined?(super)
        wait_until_not_full
      end

      # Ends {#wait_until_not_full}, so that the acceptor notices that the server is to stop. Any thread may call this,
      # and so may signal handlers.
      def stop_accepting
        @accepting = false
        @permit_released << nil
      end

      # Wakes the connections that wait for a request.
      def wake_waiting
        @connections.values.each(&:wake_up) # rubocop:disable Style/HashEachMethods -- the Hash changes meanwhile
      end

      # @return [Array<String>] the methods and paths of the requests that are being handled
      def requests = @connections.values.filter_map { |connection| Names.of(connection.fiber) }

      # @return [Integer] requests that are being handled, or wait for a permit
      def busy_threads = @max - @permits.available + backlog

      # @return [Integer] requests that wait for a permit
      def backlog = @permits.waiting

      # @return [Integer] how many requests could be handled in addition
      def pool_capacity = @permits.available

      # @return [Integer] how many requests can be handled at a time. Puma's `running` threads are that.
      def spawned = @max

      alias waiting pool_capacity

      # @return [Integer] connections that wait for a request
      def idle_connections = @connections.size - busy_threads

      # What Puma's control server tells of a thread pool, for the fibers; and what it cannot know of threads.
      #
      # @return [Hash{Symbol => Integer}] `fibers`: connections, each of which has a fiber; `waiting`: those that wait
      #   for a request; `lag_us`: by how many microseconds, at most, a fiber was late since the last call
      def stats
        # The superclass adds what this version of Puma tells besides.
        super.merge(backlog:, running: spawned, pool_capacity:, busy_threads:, fibers: @connections.size,
                    waiting: idle_connections, lag_us: (@lag_probe.take_max * 1_000_000).to_i)
      end

      # Threads are started and ended as needed; fibers need no such care.
      def auto_reap!(*) = nil

      # (see #auto_reap!)
      def auto_trim!(*) = nil

      # Waits `timeout` seconds for the connections to end, or without a limit if it is -1. Then raises ForceShutdown in
      # those that are with the application, waits for `SHUTDOWN_GRACE_TIME`, and ends the others.
      #
      # @param timeout [Numeric]
      # @return [void]
      def shutdown(timeout = -1)
        @shutdown = true
        shutdown_debug("Shutdown initiated") if @shutdown_debug == true
        end_connections unless connections_ended_within?(timeout == -1 ? nil : timeout)
        @lag_probe.stop
        trigger_before_thread_exit_hooks
      end

      # Lets the shutdown raise ForceShutdown in the calling fiber while the block runs, which is the application's part
      # of a request. If it raises, the request's children are stopped: Puma answers 500, and the request's scope does
      # not see the error.
      def with_force_shutdown
        # With Puma's option fiber_per_request, it is not the connection's fiber.
        fiber = Fiber.current
        # Added before the check: a fiber that is preempted between the two would be missed.
        @with_application[fiber] = true
        raise ::Puma::ThreadPool::ForceShutdown if @force_shutdown

        yield
      rescue Exception # rubocop:disable Lint/RescueException -- Puma answers it
        UnitOfWork.failed
        raise
      ensure
        @with_application.delete(fiber)
      end

      # @return [Boolean] whether the fiber runs the application's part of a request
      def with_application?(fiber) = @with_application.key?(fiber)

      private

      def full? = @permits.available.zero?

      def serve(client)
        connection = Connection.new(client)
        @connections[client] = connection
        # With the storage given, the fiber takes no context of the acceptor's along.
        Fiber.schedule(storage: true) do
          connection.serve(self)
        ensure
          @connections.delete(client)
          @connection_ended << nil if @shutdown
        end
      end

      def run_out_of_band_hook
        return unless @out_of_band&.any?

        @hook_lock.synchronize { trigger_out_of_band_hook if busy_threads.zero? }
      end

      # @return [Boolean] whether all connections have ended
      def connections_ended_within?(seconds)
        deadline = seconds && (Context.now + seconds)
        until @connections.empty?
          left = deadline && (deadline - Context.now)
          return false if left && left <= 0

          @connection_ended.pop(timeout: left)
        end
        true
      end

      def end_connections
        shutdown_debug("Shutdown timeout exceeded") if @shutdown_debug == :on_force
        force_shutdown
        return if connections_ended_within?(@shutdown_grace_time || ::Puma::ThreadPool::SHUTDOWN_GRACE_TIME)

        shutdown_debug("Shutdown grace timeout exceeded") if @shutdown_debug == :on_force
        @connections.values.each { |connection| connection.fiber.kill } # rubocop:disable Style/HashEachMethods -- (see above)
        connections_ended_within?(1)
      end

      # Puma writes where its threads are. Of the fibers, it sees only the one that calls this.
      def shutdown_debug(message)
        super
        @connections.each_value do |connection|
          fiber = connection.fiber
          $stdout.syswrite "#{Process.pid}: #{fiber.inspect}\n#{(fiber.backtrace || []).join("\n")}\n\n"
        end
      end

      def force_shutdown
        @force_shutdown = true
        # Requests begin and end meanwhile.
        @with_application.keys.each { |fiber| fiber.raise(::Puma::ThreadPool::ForceShutdown) } # rubocop:disable Style/HashEachMethods
      end
    end
  end
end
