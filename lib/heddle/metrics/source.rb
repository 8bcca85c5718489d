# frozen_string_literal: true

module Heddle
  module Metrics
    # A scheduler's numbers, for a reader that asks for one after the other.
    #
    # @api private
    class Source
      # Seconds for which numbers serve: long enough for one round of questions.
      AGE = 0.05
      private_constant :AGE

      # @raise [TypeError] if it is no {Scheduler}
      def initialize(scheduler)
        unless scheduler.is_a?(Scheduler)
          raise TypeError, "wrong argument type #{scheduler.class} (expected Heddle::Scheduler)"
        end

        @scheduler = scheduler
        @read_at = nil
      end

      # @return [Hash] see {Scheduler#stats}
      def stats
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        return @stats if @read_at && now - @read_at < AGE && @pid == Process.pid

        @read_at = now
        @pid = Process.pid
        @stats = @scheduler.stats
      end
    end
    private_constant :Source
  end
end
