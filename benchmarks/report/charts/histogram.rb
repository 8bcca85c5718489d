# frozen_string_literal: true

require_relative "../format"
require_relative "svg"

# The distribution of samples: a column per class of a logarithmic scale, as high as the class's share of all samples.
# The histograms of a case have the same axes, so that they can be compared one below the other.
class Histogram
  WIDTH = 920
  HEIGHT = 64
  LEFT = 172
  RIGHT = 36
  BOTTOM = 14
  CLASSES = 60
  LEAST = 1.5
  RANGE = [0.01, 10_000].freeze

  def initialize(title, css, samples)
    @title = title
    @css = css
    @samples = samples
    @scale = Svg::LogScale.new(RANGE, [0, CLASSES])
  end

  def to_s
    Svg.drawing(WIDTH, HEIGHT, axis + [name] + columns, label: "#{@title}: #{@samples.size} samples")
  end

  private

  def left(place) = LEFT + (place / CLASSES.to_f * (WIDTH - LEFT - RIGHT))

  def name
    Svg.text(@title, LEFT - 10, (HEIGHT / 2) - 4, class: "label end") +
      Svg.text("#{Format.number(@samples.size)} wake-ups", LEFT - 10, (HEIGHT / 2) + 11, class: "small end")
  end

  def axis
    @scale.ticks.flat_map do |tick|
      place = left(@scale.call(tick))
      [Svg.line([place, 2], [place, HEIGHT - BOTTOM], class: "grid"),
       Svg.text("#{tick} ms", place, HEIGHT - 2, class: "small middle")]
    end
  end

  def columns
    counts = @samples.map { |sample| @scale.call(sample).floor.clamp(0, CLASSES - 1) }.tally
    counts.sort.map { |place, count| column(place, count, count / counts.values.max.to_f) }
  end

  # The rarest wake-ups matter most, so even a single one is visible.
  def column(place, count, share)
    height = [(HEIGHT - BOTTOM - 4) * share, LEAST].max
    Svg.element("rect", x: left(place).round(1), y: (HEIGHT - BOTTOM - height).round(1), height: height.round(1),
                        width: (left(1) - left(0) - 1).round(1), class: "fill #{@css}",
                        title: "#{count} of #{@samples.size}")
  end
end
