# frozen_string_literal: true

module Heddle
  module PumaSupport
    # Logs each request that takes longer than a limit, with what its fiber has spent the time on.
    #
    # @api private
    class SlowRequests
      # @param limit [Float] seconds
      # @param log_writer [#log] Puma's
      def initialize(limit, log_writer)
        @limit = limit
        @log_writer = log_writer
      end

      # Calls the block, which serves a request in the current fiber.
      #
      # @param name [String] the method and the path
      # @return [Object] the block's value
      def watch(name)
        begun = Context.now
        begin
          yield
        ensure
          seconds = Context.now - begun
          log(name, seconds) if seconds >= @limit
        end
      end

      private

      def log(name, seconds)
        times = FiberTimes.of(Native.named_times(Fiber.current))
        took = format("%.3f", seconds)
        @log_writer.log("heddle: slow request #{Text.shortened(name).inspect} took #{took} s#{": #{times}" if times}")
      end
    end
  end
end
