# frozen_string_literal: true

module Heddle
  module Testing
    # Writes a story as a trace for Perfetto, in which a step takes a microsecond.
    class StoryTrace
      Track = Data.define(:pid, :tid)
      STEP = 1_000
      private_constant :Track, :STEP

      # @param story [Story]
      def initialize(story)
        @story = story
      end

      # @param target [String, #to_path, #write]
      # @return [nil]
      def write(target)
        Traces.write(target, "Heddle::Testing::Failure#write_trace") { |events| add_all(events) }
      end

      private

      def add_all(events)
        events.name(Track.new(pid: 1, tid: 0), "process", "the schedule of a test")
        tracks = Hash.new { |known, fiber| known[fiber] = track(events, known.size + 1, fiber) }.compare_by_identity
        time = 0
        @story.segments.each { |segment| time = add(events, tracks[segment.fiber], segment, time) }
      end

      def track(events, number, fiber)
        label = @story.segments.find { |segment| segment.fiber.equal?(fiber) }.label
        Track.new(pid: 1, tid: number).tap { |track| events.name(track, "thread", label) }
      end

      def add(events, track, segment, time)
        segment.places.each do |place|
          events.slice(track, time..(time + STEP), place.to_s, "line", { event: place.event })
          time += STEP
        end
        events.instant(track, time, "preempted") if segment.preempted
        time
      end
    end
    private_constant :StoryTrace
  end
end
