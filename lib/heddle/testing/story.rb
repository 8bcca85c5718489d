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

      # The places that a fiber passes until another fiber runs.
      Segment = Struct.new(:fiber, :label, :places, :preempted) do
        # @return [Array<Place>] the places whose lines the fiber has begun to run in this segment
        def run_places
          preempted && places.last&.event == :line ? places[..-2] : places
        end
      end

      VARIABLE = :@heddle_story_label
      private_constant :VARIABLE

      # @return [String] a fiber's name in reports
      def self.label(fiber)
        name = Names.of(fiber) || fiber.instance_variable_get(VARIABLE)
        name ? Names.shortened(Text.clean(name)) : "fiber #{fiber.object_id}"
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
      end

      # The running fiber passes a point.
      #
      # @return [Segment]
      def pass(point)
        fiber = Fiber.current
        segment = @segments.last
        @segments << (segment = Segment.new(fiber, label(fiber), [], false)) unless segment&.fiber.equal?(fiber)
        segment.places << Place.new(path: point.path, line: point.lineno, event: point.event)
        segment
      end

      # The running fiber has passed a point in this segment, and continues.
      def continue(segment)
        return if segment.equal?(@segments.last)

        segment.preempted = true
        place = segment.places.last
        # Its line runs now.
        @segments << Segment.new(segment.fiber, segment.label, place.event == :line ? [place] : [], false)
      end

      # @return [Array(String, String), nil] the first places in which two stories of one schedule differ
      def difference(other)
        own = steps
        others = other.steps
        index = (0...[own.size, others.size].max).find { |each| own[each] != others[each] }
        [own, others].map { |steps| steps[index] || "the end" } if index
      end

      protected

      def steps
        @segments.flat_map { |segment| segment.places.map { |place| "#{segment.label} at #{place}" } }
      end

      private

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
