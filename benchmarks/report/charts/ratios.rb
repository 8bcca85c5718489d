# frozen_string_literal: true

require_relative "../format"
require_relative "svg"

# An overview of all cases: a row per case, a dot per contestant at its ratio to Async. The scale is logarithmic, so
# twice as good is as far to the right as half as good is to the left. A small triangle shows Heddle's mark.
class Ratios
  ROW = 28
  TOP = 26
  LABEL = 190
  PLOT = 700
  RIGHT = 30
  RADIUS = 5.5
  APART = 4

  # A row: the case, its dots as [title, css, ratio], its mark or nil.
  Row = Data.define(:label, :dots, :mark)

  def initialize(rows)
    @rows = rows
    ratios = rows.flat_map { |row| [*row.dots.map(&:last), row.mark] }.compact.reject(&:zero?)
    @scale = Svg::LogScale.new([[*ratios, 0.5].min / 1.2, [*ratios, 10].max * 1.2], [LABEL, LABEL + PLOT])
    @height = TOP + (rows.size * ROW) + 6
  end

  def to_s
    Svg.drawing(LABEL + PLOT + RIGHT, @height, grid + @rows.each_with_index.flat_map do |row, index|
      row_of(row, index)
    end,
                label: "Ratios to Async by workload")
  end

  private

  def grid
    (@scale.ticks + [1, 2, 5, 20, 50]).uniq.flat_map do |tick|
      left = @scale.call(tick)
      next [] unless left.between?(LABEL + 1, LABEL + PLOT - 1)

      [Svg.line([left, TOP - 6], [left, @height], class: tick == 1 ? "axis" : "grid"),
       Svg.text("#{tick} ×", left, TOP - 12, class: "small middle")]
    end
  end

  def row_of(row, index)
    middle = TOP + (index * ROW) + (ROW / 2)
    [Svg.text(row.label, LABEL - 10, middle + 4, class: "label end"),
     Svg.line([LABEL, middle], [LABEL + PLOT, middle], class: "grid"), *mark(row, middle), *dots(row, middle)]
  end

  # Dots are a little apart vertically, so that none hides another.
  def dots(row, middle)
    row.dots.each_with_index.map do |(title, css, ratio), place|
      top = middle + ((place - ((row.dots.size - 1) / 2.0)) * APART)
      Svg.element("circle", cx: @scale.call(ratio).round(1), cy: top, r: RADIUS, class: "fill dot #{css}",
                            title: "#{row.label}, #{title}: #{Format.number(ratio)} × Async")
    end
  end

  def mark(row, middle)
    return [] unless row.mark

    left = @scale.call(row.mark).round(1)
    [Svg.element("path", d: "M#{left} #{middle - 7}l-5 -7h10z", class: "markfill",
                         title: "#{row.label}: mark #{row.mark} × Async")]
  end
end
