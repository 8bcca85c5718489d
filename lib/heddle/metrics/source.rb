# frozen_string_literal: true

module Heddle
  module Metrics
    # A scheduler's numbers, for a reader that asks for one after the other; and what it has counted by name, with
    # `stats: :detailed`. There are at most 100 names, and `other`; fibers without a name are left out.
    #
    # @api private
    class Source
      # Seconds for which numbers serve: long enough for one round of questions.
      AGE = 0.05
      # The numbers that were read last.
      Kept = Data.define(:read_at, :generation, :stats)
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

      # @param metric [Metric]
      # @return [Array<Array(Hash, (Integer, Float, Histogram))>] its labels and values; empty if it is not counted
      def values(metric)
        return metric.of_names(names) if metric.by_name?

        value = metric.of(stats)
        value.nil? ? [] : [[{}, value]]
      end

      # @return [Hash, nil] see {Scheduler#stats}; nil after {#detach}
      def stats
        return unless (scheduler = @scheduler)

        # Read and written once: several threads may ask at a time.
        kept = @kept
        now = Context.now
        return kept.stats if kept && now - kept.read_at < AGE && kept.generation == Native.generation

        scheduler.stats.tap { |stats| @kept = Kept.new(now, Native.generation, stats) }
      end

      # @return [Array<NameTotal>] what was counted by name, whose sums never decrease. Empty if that is not counted for
      #   good, as with `stats: :detailed`, and after {#detach}
      def names
        return [] unless (scheduler = @scheduler)

        _, always, totals = Native.name_totals(scheduler)
        return [] unless always

        totals.map { |values| NameTotal.of(*values) }.reject { |total| total.name.nil? || total.empty? }
      end
    end
    private_constant :Source
  end
end
