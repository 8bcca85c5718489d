# frozen_string_literal: true

require_relative "charts/curves"
require_relative "charts/ratios"
require_relative "page"

# The page of `rake bench`: all ratios to Async at a glance, then a card for each case, then how costs grow.
class ThroughputPage < Page
  private

  def title = "Heddle beside others: throughput"

  def lead
    "The same user code under each scheduler, each in a process of its own, taking turns. Figures are medians of the " \
      "rounds; the thin line across a bar's end goes from the least round to the greatest. “Starved” is how many " \
      "fibers never got a turn."
  end

  def body
    "<h2>Ratio to Async, more is better</h2><div class=\"card\">#{ratios}</div>" \
      "<h2>Every workload</h2><div class=\"cards\">#{cards}</div>#{growth}"
  end

  def ratios
    rows = @results.cases.map do |bench|
      others = @results.contestants(bench).reject { |contestant| contestant.name == bench.reference }
      dots = others.map { |each| [each.title, css(each), @results.figures(bench, each)[:ratio]] }.select(&:last)
      Ratios::Row.new(bench.title, dots, mark_of(bench, :ratio))
    end
    Ratios.new(rows.reject { |row| row.dots.empty? })
  end

  def mark_of(bench, figure) = bench.marks.fetch(:heddle, []).find { |mark| mark.figure == figure }&.value

  def growing?(bench) = bench.workload == "growth"

  def cards
    @results.cases.reject { |bench| growing?(bench) }.map do |bench|
      card(bench, bars(bench, mark: mark_of(bench, bench.figure)) { |figures| starved(figures) })
    end.join("\n")
  end

  def starved(figures) = figures[:starved].to_i.zero? ? "" : ", #{figures[:starved]} starved"

  def growth
    cases = @results.cases.select { |bench| growing?(bench) }
    return if cases.empty?

    tables = cases.map { |bench| "<h3>#{escape(bench.title)}</h3>#{table(bench)}" }.join
    "<h2>What an echo costs with more and more connections</h2><div class=\"card\">" \
      "<p class=\"unit\">microseconds of the server's CPU time per echo, less is better</p>#{growth_curves(cases)}" \
      "<details><summary>All figures</summary>#{tables}</details></div>"
  end

  def growth_curves(cases)
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
