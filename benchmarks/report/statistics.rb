# frozen_string_literal: true

# Medians and percentiles. The rounds of a benchmark are few, and their noise is one-sided: other processes took CPU
# time. So the median stands for all rounds, and the spread is the whole range relative to the median. No round is
# dropped as an outlier, and no distribution is assumed.
#
# Percentiles are nearest-rank, of sorted samples: each is a value that was measured.
module Statistics
  module_function

  def median(values)
    return if values.empty?

    sorted = values.sort
    middle = sorted.size / 2
    sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
  end

  def percentile(sorted, percent)
    return if sorted.empty?

    sorted[((sorted.size * percent / 100.0).ceil - 1).clamp(0, sorted.size - 1)]
  end

  # The percentiles that are reported of latencies in milliseconds.
  def latencies(sorted)
    { p50_ms: 50, p90_ms: 90, p99_ms: 99, max_ms: 100 }.transform_values { |percent| percentile(sorted, percent) }
  end

  # The difference of the greatest and the least value, relative to the median.
  def spread(values)
    middle = median(values)
    middle.nil? || middle.zero? ? 0.0 : (values.max - values.min) / middle.to_f
  end

  # The median of the rounds' ratios: what slows the machine down for a whole round cancels out in its ratio.
  def ratio(values, references) = median(ratios(values, references))

  def ratios(values, references)
    pairs = values.zip(references).reject { |pair| pair.any?(&:nil?) || pair.last.zero? }
    pairs.map { |value, reference| value / reference.to_f }
  end
end
