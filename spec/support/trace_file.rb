# frozen_string_literal: true

require "json"

# A trace, read from its file in Chrome's JSON format.
class TraceFile
  # Microseconds; the times are rounded to nanoseconds.
  ROUNDING = 0.0015

  attr_reader :data

  def self.read(path)
    new(JSON.parse(File.read(path)))
  end

  def self.range(slice) = slice["ts"]..(slice["ts"] + slice["dur"])

  def initialize(data)
    @data = data
  end

  def events(phase) = data["traceEvents"].select { |event| event["ph"] == phase }

  def slices(category = "slice") = events("X").select { |event| event["cat"] == category }

  def waits(fiber = nil) = slices("wait").select { |event| fiber.nil? || event["tid"] == fiber }

  # The names of processes or threads.
  def names(kind)
    events("M").select { |event| event["name"] == "#{kind}_name" }.map { |event| event["args"]["name"] }
  end

  def name_of(fiber)
    named = events("M").select { |event| event["name"] == "thread_name" && event["tid"] == fiber }
    named.map { |event| event["args"]["name"] }.uniq.then { |names| names.one? ? names.first : names }
  end

  # What is told of each name that a fiber had.
  def named = events("b").filter_map { |event| [event["name"], event["args"]] if event["cat"] == "name" }

  # The fibers at both ends of each arrow.
  def arrows
    arrow_ends.map { |from, to| [from["tid"], to["tid"]] }
  end

  def arrow_ends
    ends = events("f").to_h { |event| [event["id"], event] }
    events("s").filter_map { |event| [event, ends[event["id"]]] if ends[event["id"]] }
  end

  def arrows_outside_of_slices
    of_track = slices.group_by { |slice| slice.values_at("pid", "tid") }
    arrow_ends.flatten.reject do |event|
      of_track.fetch(event.values_at("pid", "tid"), []).any? { |slice| TraceFile.range(slice).cover?(event["ts"]) }
    end
  end

  # Of each read and write its name, its descriptor and its result.
  def io
    begun = events("b").to_h { |event| [event["id2"], event["args"]["fd"]] }
    ended = events("e").select { |event| event["cat"] == "operation" }
    operations = ended.map { |event| [event["name"], begun[event["id2"]], event["args"]["result"]] }
    attempts = events("i").select { |event| event["cat"] == "io" }
    operations + attempts.map { |event| [event["name"], *event["args"].values_at("fd", "result")] }
  end

  # Slices of a track of which one neither contains the other nor ends before it.
  def overlaps
    events("X").group_by { |event| event.values_at("pid", "tid") }.values.flat_map { |slices| overlaps_in(slices) }
  end

  private

  def overlaps_in(slices)
    open = []
    slices.sort_by { |slice| [slice["ts"], -slice["dur"]] }.reject do |slice|
      open.pop while open.any? && TraceFile.range(open.last).end <= slice["ts"] + ROUNDING
      fits = open.empty? || TraceFile.range(slice).end <= TraceFile.range(open.last).end + ROUNDING
      open << slice
      fits
    end
  end
end
