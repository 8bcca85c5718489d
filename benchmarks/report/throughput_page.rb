# frozen_string_literal: true

require_relative "charts/curves"
require_relative "charts/ratios"
require_relative "page"

# The page of `rake bench`: first all ratios to Async, then a card for each case, then the growth of costs.
class ThroughputPage < Page
  private

  def title = "Heddle beside others: throughput"

  def lead
    "The same user code under each scheduler, each in a process of its own, in alternation. Figures are medians of " \
      "the rounds; the thin line across a bar's end goes from the least round to the greatest. “Starved” is the " \
      "number of fibers that never ran."
  end

  def body = render("throughput")

  def ratios
    rows = @results.cases.map do |bench|
      others = @results.contestants(bench).reject { |contestant| contestant.name == bench.reference }
      dots = others.map { |each| [each.title, css(each), @results.figures(bench, each)[:ratio]] }.select(&:last)
      Ratios::Row.new(bench.title, dots, mark_of(bench, :ratio))
    end
    Ratios.new(rows.reject { |row| row.dots.empty? })
  end

  def mark_of(bench, figure) = bench.marks.fetch(:heddle, []).find { |mark| mark.figure == figure }&.value

  def growth?(bench) = bench.workload == "growth"

  def cases = @results.cases.reject { |bench| growth?(bench) }

  def growth_cases = @results.cases.select { |bench| growth?(bench) }

  def starved(figures) = figures[:starved].to_i.zero? ? "" : ", #{figures[:starved]} starved"

  def growth_curves
    cases = growth_cases
    places = cases.each_with_index.to_h { |bench, index| [bench, index / [cases.size - 1, 1].max.to_f] }
    series = cases.flat_map { |bench| @results.contestants(bench) }.uniq(&:name).map do |contestant|
      Curves::Series.new(contestant.title, css(contestant), points(places, contestant))
    end
    ticks = places.transform_keys { |bench| Format.number(bench.parameters[:connections]) }
    Curves.new(series, Curves::Axis.new("connections", ticks), unit: "µs", label: "Growth")
  end

  def points(places, contestant)
    places.map { |bench, place| [place, @results.figures(bench, contestant)[bench.figure]] }.select(&:last)
  end
end
