# frozen_string_literal: true

module Heddle
  module Testing
    # What each fiber does in a run, in order.
    class Story
      # A place in the program. At a `:line` the line has not run yet.
      Place = Data.define(:path, :line, :event) do
        # @return [String] `bank.rb:7`
        def to_s = "#{Text.clean(path)}:#{line}"
      end

      # The places that a fiber passes until another fiber runs. `preempted` is true if it was preempted at the last
      # one, `:branch` if it was preempted at a branch within the last line, and false otherwise. `chosen` is true if
      # another fiber would have run usually.
      Segment = Struct.new(:fiber, :label, :places, :preempted, :chosen) do
        # @return [Boolean] whether the fiber was preempted before it has begun to run the line of the last place
        def before_line? = preempted == true && places.last&.event == :line

        # @return [Boolean] whether the fiber was preempted before it has begun to run the line of this place
        def before?(place) = before_line? && places.last.equal?(place)

        # @return [Array<Place>] the places whose lines the fiber has begun to run in this segment
        def run_places = before_line? ? places[..-2] : places
      end

      VARIABLE = :@heddle_story_label
      # A track of a trace.
      Track = Data.define(:pid, :tid)
      # Nanoseconds: how long a trace shows each step.
      STEP = 1_000
      private_constant :VARIABLE, :Track, :STEP

      # @return [String] a fiber's name in reports
      def self.label(fiber)
        name = Names.of(fiber) || fiber.instance_variable_get(VARIABLE)
        Text.of_name(name) || "fiber #{fiber.object_id}"
      end

      # The fiber is called so in reports, if it has no name.
      def self.call_fiber(fiber, text) = fiber.instance_variable_set(VARIABLE, text)

      # The label of the fiber that runs the test's block.
      PROGRAM = "the program"

      # @return [Array<Segment>]
      attr_reader :segments

      def initialize
        @segments = []
        @labels = {}.compare_by_identity
        # The lines in which fibers were preempted at a branch.
        @unfinished = {}.compare_by_identity
        @deviations = 0
      end

      # The running fiber passes a point.
      #
      # @param place [#path, #lineno]
      # @param event [Symbol] of TracePoint
      # @param deviations [Integer] by how many the schedule differs from the usual one until now
      # @return [Segment]
      def pass(place, event, deviations)
        fiber = Fiber.current
        segment = @segments.last
        unless segment&.fiber.equal?(fiber) && !segment.preempted
          chosen = deviations > @deviations
          @segments << (segment = Segment.new(fiber, label(fiber), [*@unfinished.delete(fiber)], false, chosen))
        end
        @deviations = deviations
        segment.places << Place.new(path: place.path, line: place.lineno, event:)
        segment
      end

      # The running fiber has passed a point in this segment, and continues.
      def continue(segment)
        return if segment.equal?(@segments.last)

        segment.preempted = true
        place = segment.places.last
        # Its line runs now.
        @segments << Segment.new(segment.fiber, segment.label, place.event == :line ? [place] : [], false, false)
      end

      # The fiber that passed the last point was preempted afterwards, at a branch within its line.
      def preempt_at_branch
        segment = @segments.last
        segment.preempted = :branch
        @unfinished[segment.fiber] = segment.places.last
      end

      # @return [Array(String, String), nil] the first places in which two stories of one schedule differ
      def difference(other)
        own = steps
        others = other.steps
        index = (0...[own.size, others.size].max).find { |each| own[each] != others[each] }
        [own, others].map { |steps| steps[index] || "the end" } if index
      end

      # Writes the story as a trace for Perfetto, in which a step takes a microsecond.
      #
      # @param target [String, #to_path, #write]
      # @return [nil]
      def write_trace(target)
        Traces.write(target, "Heddle::Testing::Failure#write_trace") do |events|
          events.name(Track.new(pid: 1, tid: 0), "process", "the schedule of a test")
          tracks = {}.compare_by_identity
          time = 0
          @segments.each do |segment|
            track = tracks[segment.fiber] ||= add_track(events, tracks.size + 1, segment.label)
            time = add_segment(events, track, segment, time)
          end
        end
      end

      protected

      def steps
        @segments.flat_map { |segment| segment.places.map { |place| "#{segment.label} at #{place}" } }
      end

      private

      def add_track(events, number, label)
        Track.new(pid: 1, tid: number).tap { |track| events.name(track, "thread", label) }
      end

      # @return [Integer] when it ends
      def add_segment(events, track, segment, time)
        segment.places.each do |place|
          events.slice(track, time..(time + STEP), place.to_s, "line", { event: place.event })
          time += STEP
        end
        events.instant(track, time, "preempted") if segment.preempted
        time
      end

      def label(fiber)
        @labels[fiber] ||= Names.of(fiber)&.then { |name| Text.clean(name) } || begin
          text = @labels.empty? ? PROGRAM : "fiber #{@labels.size + 1}"
          Story.call_fiber(fiber, text)
        end
      end
    end
    private_constant :Story
  end
end
