# frozen_string_literal: true

require_relative "../format"
require_relative "svg"

# Lines over a logarithmic vertical axis: percentile curves and growth. The page defines the horizontal axis by the
# names of its ticks and their places between 0 and 1. A line of few points has dots, too. A horizontal line shows the
# mark.
class Curves
  WIDTH = 920
  HEIGHT = 320
  LEFT = 70
  RIGHT = 36
  TOP = 16
  BOTTOM = 42

  FEW = 10

  # Ticks are a Hash of names to places between 0 and 1.
  Axis = Data.define(:title, :ticks)

  # Points are [place between 0 and 1, value].
  Series = Data.define(:title, :css, :points)

  def initialize(series, axis, unit:, label:, mark: nil)
    @series = series.reject { |each| each.points.empty? }
    @axis = axis
    @unit = unit
    @label = label
    @mark = mark
    @vertical = Svg::LogScale.new(decades, [HEIGHT - BOTTOM, TOP])
  end

  def to_s
    Svg.drawing(WIDTH, HEIGHT, grid + mark + @series.flat_map { |each| line(each) }, label: @label)
  end

  private

  # The powers of ten that enclose all values.
  def decades
    values = [*@series.flat_map { |each| each.points.map(&:last) }, @mark].compact.select(&:positive?)
    least, most = values.empty? ? [1, 10] : values.minmax
    [10**Math.log10(least).floor, 10**Math.log10(most).ceil]
  end

  def left(place) = LEFT + (place * (WIDTH - LEFT - RIGHT))

  def grid = rows + columns + [Svg.text(@axis.title, left(0.5), HEIGHT - 6, class: "small middle")]

  def rows
    @vertical.ticks.flat_map do |tick|
      top = @vertical.call(tick)
      [Svg.line([LEFT, top], [WIDTH - RIGHT, top], class: "grid"),
       Svg.text("#{tick} #{@unit}", LEFT - 8, top + 4, class: "small end")]
    end
  end

  def columns
    @axis.ticks.flat_map do |name, place|
      [Svg.line([left(place), TOP], [left(place), HEIGHT - BOTTOM], class: "grid"),
       Svg.text(name, left(place), HEIGHT - BOTTOM + 16, class: "small middle")]
    end
  end

  def mark
    return [] unless @mark

    top = @vertical.call(@mark)
    [Svg.line([LEFT, top], [WIDTH - RIGHT, top], class: "mark"),
     Svg.text("mark: #{@mark} #{@unit}", WIDTH - RIGHT, top - 5, class: "small end")]
  end

  def line(series)
    places = series.points.map { |place, value| [left(place).round(1), @vertical.call(value).round(1)] }
    path = Svg.element("polyline", points: places.map { |pair| pair.join(",") }.join(" "), title: series.title,
                                   class: "stroke #{series.css}")
    return [path] if places.size > FEW

    [path, *places.zip(series.points).map do |(horizontal, vertical), (_, value)|
      Svg.element("circle", cx: horizontal, cy: vertical, r: 4, class: "fill #{series.css}",
                            title: "#{series.title}: #{Format.number(value)} #{@unit}")
    end]
  end
end
