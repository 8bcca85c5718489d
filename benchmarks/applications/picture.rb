# frozen_string_literal: true

require_relative "../report/charts/svg"
require_relative "../report/format"

# The picture of a comparison for a document: two groups of bars, one bar for each server, Heddle's last. It has its
# colours with it, as the README has no style sheet.
class Picture
  WIDTH = 760
  LABEL = 220
  PLOT = 400
  ROW = 34
  BAR = 24
  GROUP = 44
  HEAD = 40
  ATTRIBUTES = %(xmlns="http://www.w3.org/2000/svg" font-family="Helvetica, Arial, sans-serif" font-size="14")
  OTHERS = "#c77f2e"
  HEDDLE = "#2e7d4f"

  # `rows` has a label, a number and the text after the bar for each server.
  Group = Data.define(:title, :rows)

  def initialize(title, groups, footer:)
    @title = title
    @groups = groups
    @footer = footer
  end

  def to_s
    top = HEAD
    drawn = @groups.flat_map do |group|
      elements = draw(group, top)
      top += GROUP + (ROW * group.rows.size)
      elements
    end
    height = top + 28
    elements = [Svg.element("rect", width: WIDTH, height:, fill: "#ffffff"), heading, *drawn,
                Svg.text(@footer, 16, height - 10, font_size: 11, fill: "#555")]
    Svg.drawing(WIDTH, height, elements, label: @title)
       .sub("<svg", "<svg #{ATTRIBUTES}")
  end

  private

  def heading = Svg.text(@title, 16, 28, font_size: 16, font_weight: "bold", fill: "#222")

  def draw(group, top)
    most = group.rows.map { |_, value, _| value }.max
    bars = group.rows.each_with_index.flat_map do |(label, value, note), index|
      fill = index == group.rows.size - 1 ? HEDDLE : OTHERS
      bar(label, value / most * PLOT, note, top + 30 + (ROW * index), fill)
    end
    [Svg.text(group.title, 16, top + 18, font_size: 12, fill: "#555"), *bars]
  end

  def bar(label, length, note, top, fill)
    middle = top + (BAR * 0.7)
    [Svg.text(label, LABEL - 12, middle, text_anchor: "end", fill: "#222"),
     Svg.element("rect", x: LABEL, y: top, width: [length, 1].max.round(1), height: BAR, fill:),
     Svg.text(note, LABEL + length + 8, middle, fill: "#222")]
  end
end
