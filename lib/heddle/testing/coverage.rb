# frozen_string_literal: true

module Heddle
  module Testing
    # In which of the program's lines the runs of an exploration have had points, and in which fibers were preempted.
    class Coverage
      def initialize
        @lines = {}
        @is_first = true
      end

      # The first run passes a point; its schedule is the usual one, unless the program has chosen another. To note this
      # in each run would take time at each point.
      def pass(place)
        @lines[[place.path, place.lineno]] ||= false if @is_first
      end

      # A fiber was preempted at a point.
      def preempt(place) = @lines[[place.path, place.lineno]] = true

      # A run has ended.
      def end_run = @is_first = false

      # @return [Integer] how many lines had points
      def lines = @lines.size

      # @return [Integer] in how many of these a fiber was preempted
      def preempted = @lines.count(&:last)
    end
    private_constant :Coverage
  end
end
