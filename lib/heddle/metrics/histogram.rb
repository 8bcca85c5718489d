# frozen_string_literal: true

module Heddle
  module Metrics
    # Durations, counted in buckets that double in size. See {Scheduler#stats}.
    #
    # @!attribute [r] count
    #   @return [Integer] how many durations there are
    # @!attribute [r] sum
    #   @return [Float] seconds
    # @!attribute [r] max
    #   @return [Float] seconds; 0.0 if there is no duration
    # @!attribute [r] buckets
    #   @return [Hash{Float => Integer}] how many durations are shorter than so many seconds, and not in the bucket
    #     before; empty buckets are left out
    Histogram = Data.define(:count, :sum, :max, :buckets) do
      # @param counts [Array<Integer>] the number of durations in each bucket: below 1 ns, 2 ns, 4 ns and so on
      # @return [Histogram]
      # @api private
      def self.of(counts, sum, max)
        buckets = {}
        counts.each_with_index { |count, index| buckets[(1 << index) / 1e9] = count if count.positive? }
        new(count: counts.sum, sum:, max:, buckets: buckets.freeze)
      end

      # @param fraction [Numeric] from 0 to 1
      # @return [Float] seconds that this fraction of the durations does not exceed: the end of a bucket, and so up to
      #   twice the exact value, but never more than {#max}; 0.0 if there is no duration
      # @raise [ArgumentError] for another fraction
      # @example
      #   Fiber.scheduler.stats[:run_queue][:scheduled_duration].percentile(0.999)
      def percentile(fraction)
        unless fraction.is_a?(Numeric) && (0..1).cover?(fraction)
          raise ArgumentError, "percentile: must be a number from 0 to 1, not #{fraction.inspect}"
        end

        wanted = [(count * fraction).ceil, 1].max
        seen = 0
        bound, = buckets.find { |_, number| (seen += number) >= wanted }
        bound ? [bound, max].min : 0.0
      end

      # @return [Float] seconds; see {#percentile}
      def p50 = percentile(0.5)

      # @return [Float] seconds; see {#percentile}
      def p99 = percentile(0.99)

      # @return [Hash{Symbol => Integer, Float, Hash}] `count`, `sum`, `max`, `p50`, `p99` and `buckets`, as for JSON
      def to_h = { count:, sum:, max:, p50:, p99:, buckets: }
    end
  end
end
