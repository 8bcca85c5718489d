# frozen_string_literal: true

module Heddle
  module Metrics
    # A scheduler's numbers, for a reader that asks for one after the other; and what it has counted by name, see
    # {NameReport}. There are at most 100 names, and `other`; fibers without a name are left out.
    #
    # @api private
    class Source
      # Seconds for which numbers serve: long enough for one round of questions.
      AGE = 0.05
      # The numbers that were read last.
      Kept = Data.define(:read_at, :generation, :stats)
      # A name: how many fibers had it and for how long, as a histogram, and what they spent that time on.
      Total = Data.define(:name, :count, :sum, :buckets, :max, :ran, :runnable, :waited)
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
        return kept.stats if kept && now - kept.read_at < AGE && kept.generation == Native.generation

        scheduler.stats.tap { |stats| @kept = Kept.new(now, Native.generation, stats) }
      end

      # @return [Array<Total>] what was counted by name; empty if nothing is counted, and after {#detach}
      def names
        return [] unless (scheduler = @scheduler)

        Native.name_totals(scheduler).filter_map do |values|
          name, _, count, _, _, max, ran, runnable, waited, _, sum, buckets = values
          next if name.nil? || (count.zero? && ran.zero?)

          Total.new(name: NameReport.text(name), count:, sum:, buckets:, max:, ran:, runnable:, waited:)
        end
      end
    end
    private_constant :Source
  end
end
