# frozen_string_literal: true

module Heddle
  module Metrics
    # Durations, counted in buckets: four for each power of two nanoseconds. See {Scheduler#stats}.
    #
    # @!attribute [r] count
    #   @return [Integer] how many durations there are
    # @!attribute [r] sum
    #   @return [Float] seconds
    # @!attribute [r] max
    #   @return [Float] seconds; 0.0 if there is no duration
    # @!attribute [r] buckets
    #   @return [Hash{Float => Integer}] how many durations are shorter than so many seconds, and not in the bucket
    #     before; empty buckets are left out. The last one, from 18 minutes on, ends at infinity
    Histogram = Data.define(:count, :sum, :max, :buckets) do
      # @param counts [Array<Integer>] the number of durations in each bucket
      # @return [Histogram]
      # @api private
      def self.of(counts, sum, max)
        count = counts.sum
        used = count.zero? ? [] : counts.each_with_index.select { |number, _| number.positive? }
        buckets = used.to_h { |number, index| [end_of(index, counts.size), number] }
        new(count:, sum:, max:, buckets: buckets.freeze)
      end

      # The next bucket begins there. Its number has the power of two, and which of the four it is; below 8 ns each
      # number has its own. The last bucket has no end.
      def self.end_of(index, size)
        following = index + 1
        return Float::INFINITY if following == size

        (following < 4 ? following : (4 + (following % 4)) << ((following / 4) - 1)) / 1e9
      end
      private_class_method :end_of

      # @return [Histogram] the durations of both
      # @api private
      def +(other)
        both = buckets.merge(other.buckets) { |_, one, another| one + another }.sort.to_h
        with(count: count + other.count, sum: sum + other.sum, max: [max, other.max].max, buckets: both.freeze)
      end

      # @param other [Histogram] what this one was at an earlier time
      # @return [Histogram] the durations since then. Its `max` may be the end of the bucket that has the longest one
      # @api private
      def -(other)
        since = buckets.to_h { |bound, number| [bound, number - other.buckets.fetch(bound, 0)] }
        since.select! { |_, number| number.positive? }
        max = [self.max, since.keys.last || 0.0].min
        with(count: count - other.count, sum: sum - other.sum, max:, buckets: since.freeze)
      end

      # @param fraction [Numeric] from 0 to 1
      # @return [Float] seconds that this fraction of the durations does not exceed: the end of a bucket, and so up to a
      #   quarter more than the exact value, but never more than {#max}; 0.0 if there is no duration
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
