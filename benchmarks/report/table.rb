# frozen_string_literal: true

require_relative "../contestants"
require_relative "format"

# The results as text: a block per case, a line per contestant. `× Async` is the ratio to Async in the same rounds; for
# it more is better, whatever the unit. ✓ or ✗ after a mark says whether the figure reaches the mark.
class Table
  WIDTHS = [26, 14, 8, 9, 9].freeze

  def initialize(results)
    @results = results
  end

  def to_s = @results.cases.map { |bench| block(bench) }.join("\n")

  private

  def block(bench)
    heading = line(bench.title, bench.unit, "spread", "× #{reference(bench)}", "starved", "mark, and more")
    [heading, "-" * heading.size, *rows(bench),
     *@results.troubles(bench).map { |trouble| "  left out: #{trouble}" }, ""].join("\n")
  end

  def reference(bench) = bench.reference == Contestants::REFERENCE ? "Async" : bench.reference[/[^-]+\z/]

  def rows(bench)
    @results.contestants(bench).map do |contestant|
      figures = @results.figures(bench, contestant)
      line("  #{contestant.title}", Format.number(figures[bench.figure]), Format.percent(figures[:spread]),
           Format.number(figures[:ratio]), figures[:starved].to_s,
           [*Format.marks(bench, contestant, figures), *Format.extras(bench, figures)].join("  "))
    end
  end

  def line(title, *figures, last)
    columns = figures.zip(WIDTHS.drop(1)).map { |figure, width| figure.rjust(width) }
    "#{title.ljust(WIDTHS.first)}#{columns.join}   #{last}".rstrip
  end
end
