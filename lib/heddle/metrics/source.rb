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

      # From now on there are no numbers, and the scheduler can be collected.
      def detach
        @scheduler = @stats = @read_at = nil
      end

      # @return [Hash, nil] see {Scheduler#stats}; nil after {#detach}
      def stats
        return unless (scheduler = @scheduler)

        now = Context.now
        return @stats if @read_at && now - @read_at < AGE && @pid == Process.pid

        @read_at = now
        @pid = Process.pid
        @stats = scheduler.stats
      end

      # @return [Array<NameTotals::Total>] what was counted by name; empty after {#detach}
      def names = @scheduler ? NameTotals.of(@scheduler) : []
    end
    private_constant :Source
  end
end
