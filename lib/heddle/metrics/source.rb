# frozen_string_literal: true

module Heddle
  module Metrics
    # A scheduler's numbers, for a reader that asks for one after the other.
    #
    # @api private
    class Source
      # Seconds for which numbers serve: long enough for one round of questions.
      AGE = 0.05
      # The numbers that were read last.
      Kept = Data.define(:read_at, :pid, :stats)
      private_constant :AGE, :Kept

      # @raise [TypeError] if it is no {Scheduler}
      def initialize(scheduler)
        unless scheduler.is_a?(Scheduler)
          raise TypeError, "wrong argument type #{scheduler.class} (expected Heddle::Scheduler)"
        end

        @scheduler = scheduler
        @kept = nil
      end

      # From now on there are no numbers, and the scheduler can be collected.
      def detach
        @scheduler = @kept = nil
      end

      # @return [Hash, nil] see {Scheduler#stats}; nil after {#detach}
      def stats
        return unless (scheduler = @scheduler)

        # Read and written once: several threads may ask at a time.
        kept = @kept
        now = Context.now
        return kept.stats if kept && now - kept.read_at < AGE && kept.pid == Process.pid

        scheduler.stats.tap { |stats| @kept = Kept.new(now, Process.pid, stats) }
      end

      # @return [Array<NameTotals::Total>] what was counted by name; empty after {#detach}
      def names = @scheduler ? NameTotals.of(@scheduler) : []
    end
    private_constant :Source
  end
end
