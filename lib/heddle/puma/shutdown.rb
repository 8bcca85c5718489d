# frozen_string_literal: true

module Heddle
  module Puma
    # How a {FiberPool} ends.
    #
    # @api private
    module Shutdown
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

      private

      # @return [Boolean] whether all connections have ended
      def connections_ended_within?(seconds)
        deadline = seconds && (Context.now + seconds)
        until @connections.empty?
          left = deadline && (deadline - Context.now)
          return false if left&.negative?

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
        @with_application.each_key { |fiber| fiber.raise(::Puma::ThreadPool::ForceShutdown) }
      end
    end
  end
end
