# frozen_string_literal: true

require_relative "../format"
require_relative "svg"

# A bar per contestant. Its length is the median of the rounds; the thin line across its end goes from the least round
# to the greatest. Bars begin at zero, so their lengths can be compared. A dashed line shows the mark.
class Bars
  ROW = 26
  BAR = 14
  LABEL = 160
  PLOT = 200
  FIGURE = 140

  # A row: a contestant, the figure with its least and greatest, and the text after the bar.
  Row = Data.define(:label, :css, :value, :least, :greatest, :note)

  def initialize(rows, label:, mark: nil)
    @rows = rows
    @label = label
    @mark = mark
    @most = [*rows.map(&:greatest), mark || 0].max
  end

  def to_s
    height = (@rows.size * ROW) + (@mark ? ROW / 2 : 0)
    elements = @rows.each_with_index.flat_map { |row, index| row_of(row, (index * ROW) + (ROW / 2)) }
    Svg.drawing(LABEL + PLOT + FIGURE, height, elements + mark(height), label: @label)
  end

  private

  def place(value) = LABEL + (@most.zero? ? 0 : value / @most.to_f * PLOT)

  def row_of(row, middle)
    [Svg.text(row.label, LABEL - 8, middle + 4, class: "label end"), bar(row, middle),
     Svg.line([place(row.least), middle], [place(row.greatest), middle], class: "range"),
     Svg.text(row.note, place([row.greatest, row.value].max) + 6, middle + 4, class: "figure")]
  end

  def bar(row, middle)
    width = [place(row.value) - LABEL, 1].max
    Svg.element("rect", x: LABEL, y: middle - (BAR / 2), width: width.round(1), height: BAR, rx: 2,
                        class: "fill #{row.css}", title: "#{row.label}: #{row.note}")
  end

  def mark(height)
    return [] unless @mark

    left = place(@mark)
    [Svg.line([left, 0], [left, height - (ROW / 2) + 2], class: "mark"),
     Svg.text("mark", left, height - 1, class: "small middle")]
  end
end
