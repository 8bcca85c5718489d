# frozen_string_literal: true

require_relative "format"
require_relative "statistics"

# Two trees' results as text, a line per case and contestant: the medians, and the ratios of the rounds, told so that
# more than 1 means that this tree is better, whatever the unit. If `least` and `greatest` lie on different sides of 1,
# the trees do not differ measurably.
class ComparisonTable
  HEADING = ["", "", "unit", "base", "this", "ratio", "least", "greatest"].freeze

  def initialize(base, this)
    @base = base
    @this = this
  end

  def to_s
    lines = [HEADING, *rows]
    widths = lines.transpose.map { |column| column.map(&:size).max }
    lines.map { |cells| cells.zip(widths).each_with_index.map { |cell, index| align(*cell, index) }.join("  ").rstrip }
         .join("\n")
  end

  private

  # Names and units to the left, figures to the right.
  def align(text, width, column) = column < 3 ? text.ljust(width) : text.rjust(width)

  def rows
    @this.cases.flat_map do |bench|
      @this.contestants(bench).filter_map { |contestant| row(bench, contestant) }
    end
  end

  def row(bench, contestant)
    base, this = [@base, @this].map { |results| results.by_round(bench, contestant) }
    ratios = bench.more_is_better ? Statistics.ratios(this, base) : Statistics.ratios(base, this)
    return if ratios.empty?

    [bench.title, contestant.title, bench.unit,
     *[base, this].map { |values| Format.number(Statistics.median(values.compact)) },
     *[Statistics.median(ratios), *ratios.minmax].map { |ratio| format("%.3f", ratio) }]
  end
end
