# frozen_string_literal: true

module Heddle
  module PumaSupport
    # A client's connection, and the fiber that serves it from `accept` to `close`.
    #
    # The fiber alternates between two states: it handles requests, for which it needs one of the pool's permits, or it
    # waits in the kernel for the client to send (the rest of) a request.
    #
    # @api private
    class Connection
      # Raised in a waiting fiber when the server shuts down.
      class WakeUp < Exception; end # rubocop:disable Lint/InheritException
      private_constant :WakeUp

      # @return [Fiber]
      attr_reader :fiber

      # @return [Request, nil] what is being handled, or was handled last
      attr_accessor :request

      # @param client [::Puma::Client]
      def initialize(client)
        @client = client
        @waiting = false
        @next = nil
      end

      # Alternates between the two states until the client's connection is closed or handed to the program.
      #
      # @param pool [FiberPool]
      def serve(pool)
        @fiber = Fiber.current
        while true # rubocop:disable Style/InfiniteLoop -- `loop` would rescue a StopIteration that is raised in this fiber
          @next = nil
          pool.handle(self, @client)
          # Puma's methods, which `handle` and `@on_data` call, have asked for the next state.
          wait_until_complete while @next == :wait
          break unless @next == :handle
        end
      end

      # Handles (further) requests next.
      def handle_next
        @next = :handle
      end

      # Waits next. The block is called when data has arrived, the client's timeout has elapsed, or the server shuts
      # down. It returns false if the connection is to wait on.
      def wait_next(on_data)
        @on_data = on_data
        @next = :wait
      end

      # Ends the wait. A second call must not raise in the fiber after its wait.
      def wake_up
        Heddle.without_preemption do
          next unless @waiting

          @waiting = false
          @fiber.raise(WakeUp)
        end
      end

      # Puma calls these on the threads of its pool.
      # @return [void]
      def mark_as_io_thread!; end

      # @return [Boolean]
      def marked_as_io_thread? = false

      private

      def wait_until_complete
        wait_readable
        @next = nil
        @next = :wait unless @on_data.call(@client) || @next
      end

      def wait_readable
        @waiting = true
        begin
          @client.to_io.wait_readable(@client.timeout)
        ensure
          @waiting = false
        end
      rescue WakeUp, IOError, SystemCallError
        # Reading raises an error of the socket again, where Puma expects it.
      rescue Exception # rubocop:disable Lint/RescueException -- raised again
        # It comes from a fiber that a request has spun, or the fiber is being ended. Puma has no part in it.
        @client.close
        raise
      end
    end
  end
end
