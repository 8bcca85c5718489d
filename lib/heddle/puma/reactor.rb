# frozen_string_literal: true

module Heddle
  module PumaSupport
    # Takes the place of `::Puma::Reactor`, which waits on a thread of its own for the clients that have not yet sent
    # their whole request. Beside a fiber that computes, that thread would wait for the GVL for up to 100 ms. Here the
    # connection's own fiber waits.
    #
    # @api private
    class Reactor
      # @return [Integer] the highest number of waiting connections since the value was last reset
      attr_accessor :reactor_max

      # @param pool [FiberPool]
      # @yieldparam client [::Puma::Client] (see Connection#wait_next)
      def initialize(pool, &on_data)
        @pool = pool
        @on_data = on_data
        @reactor_max = 0
        @closed = false
      end

      # The calling fiber waits for this client when it returns to {Connection#serve}.
      #
      # @param client [::Puma::Client]
      # @return [Boolean] false after {#shutdown}
      def add(client) # rubocop:disable Naming/PredicateMethod -- Puma's name
        return false if @closed

        @pool.connection(client).wait_next(@on_data)
        size = reactor_size
        @reactor_max = size if size > @reactor_max
        true
      end

      # @return [Integer]
      def reactor_size = @pool.idle_connections

      # Ends the waits: connections without a request are closed, the others are handled.
      def shutdown
        @closed = true
        @pool.wake_waiting
      end
    end
  end
end
