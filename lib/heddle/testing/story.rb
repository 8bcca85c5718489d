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
      # another fiber would have run usually. `elapsed` is the {Limit} that has elapsed at the last place.
      Segment = Struct.new(:fiber, :label, :places, :preempted, :chosen, :elapsed) do
        # @return [Boolean] whether the segment ends before the fiber has begun to run the line of the last place
        def before_line? = (preempted == true || !elapsed.nil?) && places.last&.event == :line

        # @return [Boolean] whether the segment ends before the fiber has begun to run the line of this place
        def before?(place) = before_line? && places.last.equal?(place)

        # @return [Array<Place>] the places whose lines the fiber has begun to run in this segment
        def run_places = before_line? ? places[..-2] : places
      end

      # A limit of the program: where it was set, and after how many nanoseconds of virtual time it has elapsed. While
      # it is pending, `time` is the time at which it began.
      Limit = Data.define(:path, :line, :time)

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
        @limits = {}
        @switches = 0
      end

      # The running fiber passes a point.
      #
      # @param place [#path, #lineno]
      # @param event [Symbol] of TracePoint
      # @param switches [Integer] how many times until now another fiber was next than usually
      # @return [Segment]
      def pass(place, event, switches)
        fiber = Fiber.current
        segment = @segments.last
        unless segment&.fiber.equal?(fiber) && !segment.preempted && !segment.elapsed
          chosen = switches > @switches
          @segments << (segment = Segment.new(fiber, label(fiber), [*@unfinished.delete(fiber)], false, chosen))
        end
        @switches = switches
        segment.places << Place.new(path: place.path, line: place.lineno, event:)
        segment
      end

      # The running fiber has passed a point in this segment, and continues.
      def continue(segment)
        is_last = segment.equal?(@segments.last)
        return if is_last && !segment.elapsed

        segment.preempted = true unless is_last
        place = segment.places.last
        # Its line runs now.
        @segments << Segment.new(segment.fiber, segment.label, place.event == :line ? [place] : [], false, false)
      end

      # The program sets a limit.
      #
      # @param place [Thread::Backtrace::Location]
      # @param time [Integer] nanoseconds of virtual time
      def begin_limit(number, place, time)
        @limits[number] = Limit.new(path: place.path, line: place.lineno, time:)
      end

      # The limit elapses at the last place that the running fiber has passed. It may elapse again, if another fiber
      # moves it before its exception is raised.
      def pass_limit(number, time)
        limit = @limits[number]
        @limits[number] = limit.with(time:)
        @segments.last.elapsed = limit.with(time: time - limit.time)
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
        events.instant(track, time, "limit elapsed") if segment.elapsed
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
