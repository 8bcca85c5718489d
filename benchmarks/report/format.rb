# frozen_string_literal: true

require_relative "statistics"

# Formats figures: three significant digits, thousands separated by commas, a dash where nothing was measured.
module Format
  SIGNIFICANT = 3
  SHARES = %i[cpu_overhead share_of_ideal least_share greatest_share cpu_bound_share].freeze

  module_function

  def number(value)
    return "–" if value.nil?
    return "0" if value.zero?
    return thousands(value.to_s) if value.is_a?(Integer)

    digits = [SIGNIFICANT - 1 - Math.log10(value.abs).floor, 0].max
    whole, fraction = format("%.#{digits}f", value).split(".")
    [thousands(whole), fraction].compact.join(".")
  end

  # The median, and the whole range.
  def summary(values)
    return "–" if values.empty?

    "#{number(Statistics.median(values))} (#{values.minmax.map { |value| number(value) }.join("–")})"
  end

  def thousands(digits) = digits.gsub(/(\d)(?=(\d{3})+\z)/, "\\1,")

  def percent(share) = share.nil? ? "–" : "#{number((share * 100).round(1))} %"

  def marks(bench, contestant, figures)
    bench.marks_of(contestant).map { |mark| "#{mark} #{mark.met?(figures) ? "✓" : "✗"}" }
  end

  def extra(key, figures) = SHARES.include?(key) ? percent(figures[key]) : number(figures[key])

  def extras(bench, figures) = bench.extras.map { |key| "#{key} #{extra(key, figures)}" }
end
