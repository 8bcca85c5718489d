# frozen_string_literal: true

module Heddle
  module Testing
    # Tells a failing schedule.
    class Report
      # How many lines are shown of a fiber until it is preempted or another fiber runs.
      SHOWN = 6
      # The length of a message that is shown in one line.
      BRIEF = 160
      private_constant :SHOWN, :BRIEF

      # @param story [Story]
      # @param files [ProgramFiles]
      def initialize(story, files)
        @story = story
        @files = files
      end

      # @param error [Exception]
      # @param head [String] which run has failed
      # @param replay [String] a command
      # @param note [String, nil] what could not be done
      # @return [String]
      def text(error, head, replay, note = nil)
        whole = Text.clean(Faults.message(error))
        message = whole.split.join(" ")
        brief = message.length <= BRIEF
        first = brief ? message : whole.strip.lines.first.to_s.chomp
        ["#{first} (#{Text.clean(Faults.class_name(error))})\n#{head}\n\n#{schedule}", "Replay: #{replay}", *note,
         *(whole unless brief)].join("\n\n")
      end

      private

      # Only what is near to a preemption tells something.
      def schedule
        rows = shown.flat_map { |index| index ? segment_rows(index) : [["", "…", ""]] }
        widths = [0, 1].map { |column| rows.map { |row| row[column].length }.max || 0 }
        lines = rows.map { |name, place, text| "  #{name.ljust(widths[0])}  #{place.ljust(widths[1])}  #{text}".rstrip }
        lines.join("\n")
      end

      # @return [Array<Integer, nil>] indexes of segments; nil stands for those that are left out
      def shown
        segments = @story.segments
        switches = segments.each_index.select { |index| segments[index].preempted }
        near = switches.empty? ? segments.each_index.to_a.last(3) : switches.flat_map { |index| meanwhile(index) }
        near = near.uniq.sort
        near.each_with_index.flat_map { |index, at| at.positive? && index > near[at - 1] + 1 ? [nil, index] : [index] }
      end

      # From a preemption until the fiber continues.
      def meanwhile(index)
        segments = @story.segments
        back = ((index + 1)...segments.size).find { |later| segments[later].fiber.equal?(segments[index].fiber) }
        (index..(back || [index + 1, segments.size - 1].min)).to_a
      end

      def segment_rows(index)
        segment = @story.segments[index]
        rows = lines(segment.run_places).map { |place| ["", short(place), @files.source(place.path, place.line) || ""] }
        rows = shorten(rows, index)
        rows = segment.places.first(1).map { |place| ["", short(place), ""] } if rows.empty?
        return [] if rows.empty?

        rows.first[0] = segment.label
        rows << ["", "", ending(segment)] if segment.preempted
        rows
      end

      # The lines that tell most are those before a preemption, and those after the last one.
      def shorten(rows, index)
        return rows if rows.size <= SHOWN

        omitted = [["", "…", ""]]
        return omitted + rows.last(SHOWN - 1) if index.zero? || !continued?(index)

        rows.first(SHOWN - 1) + omitted
      end

      # Whether the fiber was preempted when it ran before.
      def continued?(index)
        segments = @story.segments
        before = (0...index).to_a.reverse.find { |earlier| segments[earlier].fiber.equal?(segments[index].fiber) }
        before && segments[before].preempted
      end

      def ending(segment)
        where = segment.before_line? ? "before" : "in"
        branch = ", at a branch" if segment.preempted == :branch
        "-- preempted #{where} line #{segment.places.last.line}#{branch}"
      end

      def short(place) = @files.place(place.path, place.line)

      # Calls and returns are points, but say no more than the lines before them.
      def lines(places) = places.select { |place| place.event == :line }
    end
    private_constant :Report
  end
end
