# frozen_string_literal: true

module Heddle
  module Testing
    # Tells a failing schedule.
    class Report
      # How many lines are shown of a fiber until it is preempted or another fiber runs.
      SHOWN = 6
      # How many segments are shown if the usual schedule fails.
      LAST = 6
      # The length of a message that is shown in one line.
      BRIEF = 160
      private_constant :SHOWN, :LAST, :BRIEF

      # @param story [Story]
      # @param files [ProgramFiles]
      def initialize(story, files)
        @story = story
        @files = files
      end

      # @param error [Exception]
      # @param head [String] which run has failed
      # @param replay [String] a command
      # @param notes [Array<String>] what else there is to know of the run
      # @return [String]
      def text(error, head, replay, notes)
        whole = Text.clean(Faults.message(error))
        message = whole.split.join(" ")
        brief = message.length <= BRIEF
        first = brief ? message : whole.strip.lines.first.to_s.chomp
        ["#{first} (#{Text.clean(Faults.class_name(error))})\n#{head}\n\n#{schedule}", "Replay: #{replay}", *notes,
         *(whole unless brief)].join("\n\n")
      end

      private

      # Only what is near to a switch tells something, if the schedule has decided it.
      def schedule
        rows = shown.flat_map { |index| index ? segment_rows(index) : [["", "…", ""]] }
        widths = [0, 1].map { |column| rows.map { |row| row[column].length }.max || 0 }
        lines = rows.map { |name, place, text| "  #{name.ljust(widths[0])}  #{place.ljust(widths[1])}  #{text}".rstrip }
        lines.join("\n")
      end

      # @return [Array<Integer, nil>] indexes of segments; nil stands for those that are left out
      def shown
        near = near_switches
        near = @story.segments.each_index.to_a.last(LAST) if near.empty?
        near.each_with_index.flat_map { |index, at| at.positive? && index > near[at - 1] + 1 ? [nil, index] : [index] }
      end

      def near_switches
        segments = @story.segments
        switches = segments.each_index.select { |index| ends_by_choice?(index) }
        switches.flat_map { |index| meanwhile(index) }.uniq.sort
      end

      def ends_by_choice?(index)
        segment = @story.segments[index]
        segment.preempted || segment.elapsed || chosen_after(index)
      end

      # @return [Story::Segment, nil] what follows, if a fiber runs in it that would not have run usually
      def chosen_after(index)
        following = @story.segments[index + 1]
        following if following&.chosen
      end

      # From a switch until the fiber continues.
      def meanwhile(index)
        segments = @story.segments
        back = ((index + 1)...segments.size).find { |later| segments[later].fiber.equal?(segments[index].fiber) }
        (index..(back || [index + 1, segments.size - 1].min)).to_a
      end

      def segment_rows(index)
        segment = @story.segments[index]
        rows = shorten(place_rows(segment), index)
        return [] if rows.empty?

        rows.first[0] = segment.label
        rows << ["", "", "-- #{limit(segment.elapsed)} elapses here"] if segment.elapsed
        rows << ["", "", "-- preempted #{where(segment)}"] if segment.preempted
        chosen = chosen_after(index)
        rows << ["", "", "-- #{chosen.label} is chosen to run next"] if chosen && !segment.preempted
        rows
      end

      def place_rows(segment)
        places = lines(segment.run_places)
        # The line has not begun, or was begun before.
        places = segment.places.first(1) if places.empty?
        places.map { |place| ["", short(place), (@files.source(place.path, place.line) unless segment.before?(place))] }
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

      def where(segment)
        branch = ", at a branch" if segment.preempted == :branch
        "#{segment.before_line? ? "before" : "in"} line #{segment.places.last.line}#{branch}"
      end

      def limit(limit)
        seconds = format("%<seconds>.9f", seconds: limit.time / 1e9).sub(/\.?0+\z/, "")
        "the limit of #{seconds} s at #{short(limit)}"
      end

      def short(place) = @files.place(place.path, place.line)

      # Calls and returns are points, but say no more than the lines before them.
      def lines(places) = places.select { |place| place.event == :line }
    end
    private_constant :Report
  end
end
