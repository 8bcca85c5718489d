# frozen_string_literal: true

require "json"
require_relative "charts/svg"

# The picture of a part of a trace, drawn from the trace's own data:
#
#   ruby -Ilib examples/trace.rb trace.json
#   ruby benchmarks/report/trace_picture.rb trace.json > docs/images/trace.svg
#
# Further arguments are the length of the part and its beginning, in milliseconds. By default it begins shortly before
# the first preemption in the second half of the trace.
class TracePicture
  WIDTH = 760
  LABEL = 108
  PLOT = WIDTH - LABEL - 20
  ROW = 30
  BAR = 18
  HEAD = 66
  ATTRIBUTES = %(xmlns="http://www.w3.org/2000/svg" font-family="Helvetica, Arial, sans-serif" font-size="13")
  COLORS = { "slice" => "#2e7d4f", "runnable" => "#e3b06f", "wait" => "#e6e9e7", "gc" => "#7a4b9a" }.freeze
  LEGEND = { "runs" => "slice", "is runnable" => "runnable", "waits" => "wait" }.freeze
  ARROW = "#3b6fb5"
  PREEMPTED = "#b3261e"

  def initialize(trace, length:, from: nil)
    @events = trace.fetch("traceEvents")
    @middle = trace.fetch("otherData").fetch("seconds") * 1e6 / 2
    @length = length * 1000.0
    @from = from ? from * 1000.0 : first_preemption - (@length / 5)
    @rows = rows
  end

  def to_s
    height = HEAD + (ROW * @rows.size) + 40
    elements = [Svg.element("rect", width: WIDTH, height:, fill: "#ffffff"), heading, *legend, *labels, *bars, *arrows,
                *preemptions, *axis(height)]
    Svg.drawing(WIDTH, height, elements, label: title).sub("<svg", "<svg #{ATTRIBUTES}")
  end

  private

  def first_preemption
    found = @events.select { |event| event["name"] == "preempted" && event["ts"] > @middle }
    found.map { |event| event["ts"] }.min
  end

  def title = "#{format("%g", @length / 1000)} ms of a trace: a web server beside a fiber that computes"

  def heading = Svg.text(title, 16, 26, font_size: 16, font_weight: "bold", fill: "#222")

  # The fibers that run in this part, with their names; the one that runs for the longest time comes first.
  def rows
    slices = visible("slice").group_by { |event| track(event) }
    tracks = slices.sort_by { |_, found| -found.sum { |event| event["dur"] } }.map(&:first)
    tracks.to_h { |track| [track, name_of(track)] }
  end

  def track(event) = event.values_at("pid", "tid")

  def name_of(track)
    @events.find { |event| event["name"] == "thread_name" && track(event) == track }["args"]["name"]
  end

  def visible(*categories)
    @events.select do |event|
      event["ph"] == "X" && categories.include?(event["cat"]) && event["ts"] < @from + @length &&
        event["ts"] + event["dur"] > @from
    end
  end

  def place(time) = LABEL + ((time - @from) / @length * PLOT)

  def top(event)
    index = @rows.keys.index(track(event))
    HEAD + (ROW * index) if index
  end

  def within?(event) = event["ts"].between?(@from, @from + @length) && top(event)

  def legend
    LEGEND.each_with_index.flat_map do |(text, category), index|
      left = LABEL + (index * 110)
      [Svg.element("rect", x: left, y: 40, width: 12, height: 12, fill: COLORS.fetch(category)),
       Svg.text(text, left + 18, 50, font_size: 12, fill: "#555")]
    end + mark_legend
  end

  def mark_legend
    left = LABEL + (LEGEND.size * 110)
    [Svg.line([left, 46], [left + 14, 46], stroke: ARROW, "stroke-width": 1.5),
     Svg.text("wakes", left + 20, 50, font_size: 12, fill: "#555"),
     Svg.line([left + 110, 38], [left + 110, 54], stroke: PREEMPTED, "stroke-width": 2),
     Svg.text("is preempted", left + 116, 50, font_size: 12, fill: "#555")]
  end

  def labels
    @rows.values.each_with_index.map do |name, index|
      Svg.text(name, LABEL - 10, HEAD + (ROW * index) + 13, text_anchor: "end", fill: "#222")
    end
  end

  def bars
    COLORS.keys.reverse.rotate(1).flat_map { |category| visible(category) }.filter_map { |event| bar(event) }
  end

  def bar(event)
    return unless (top = top(event))

    left = place([event["ts"], @from].max)
    right = place([event["ts"] + event["dur"], @from + @length].min)
    # A slice of a few microseconds must be seen.
    width = [right - left, event["cat"] == "slice" ? 1.2 : 0.4].max
    Svg.element("rect", x: left.round(1), y: top, width: width.round(1), height: BAR,
                        fill: COLORS.fetch(event["cat"]), title: event["name"])
  end

  def arrows
    ends = %w[s f].map { |phase| @events.select { |event| event["ph"] == phase && within?(event) } }
    ends.flatten.group_by { |event| event["id"] }.values.filter_map { |pair| arrow(*pair) if pair.size == 2 }
  end

  def arrow(from, to)
    ends = [from, to].map { |event| [place(event["ts"]), top(event) + (BAR / 2)] }
    Svg.line(*ends, stroke: ARROW, "stroke-width": 1.5)
  end

  def preemptions
    found = @events.select { |event| event["ph"] == "i" && event["name"] == "preempted" && within?(event) }
    found.map do |event|
      left = place(event["ts"])
      Svg.line([left, top(event) - 3], [left, top(event) + BAR + 3], stroke: PREEMPTED, "stroke-width": 2)
    end
  end

  def axis(height)
    (0..4).map { |index| @length * index / 4 }.map do |step|
      text = "#{format("%.3g", step / 1000)} ms"
      Svg.text(text, place(@from + step), height - 14, text_anchor: "middle", font_size: 11, fill: "#555")
    end
  end
end

if $PROGRAM_NAME == __FILE__
  trace = JSON.parse(File.read(ARGV.fetch(0)))
  puts TracePicture.new(trace, length: Float(ARGV.fetch(1, 0.4)), from: ARGV[2]&.then { |from| Float(from) })
end
