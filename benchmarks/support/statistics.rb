# frozen_string_literal: true

# Medians and percentiles. The rounds of a benchmark are few and their noise is one-sided (somebody else took the CPU),
# so the median stands for all of them, and the spread is the whole range, told as a share of the median: no round is
# left out as an outlier, and nothing is assumed about how they are distributed.
#
# Percentiles are nearest-rank, of sorted samples: a value that has really been measured.
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

  # The distance from the least to the greatest, relative to the median.
  def spread(values)
    middle = median(values)
    middle.nil? || middle.zero? ? 0.0 : (values.max - values.min) / middle.to_f
  end

  # A geometric mean would hide nothing here, but the rounds alternate: each one's own ratio is what they share.
  def ratio(values, references)
    pairs = values.zip(references).reject { |pair| pair.any?(&:nil?) || pair.last.zero? }
    median(pairs.map { |value, reference| value / reference.to_f })
  end
end
