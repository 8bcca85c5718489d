# frozen_string_literal: true

module Heddle
  module Testing
    # The schedules of runs. Each tells the scheduler, which decides: see `ext/core/src/explore/exploration.rs`.
    module Schedule
      # By seed, at random.
      Random = Data.define(:seed) do
        # Begins to choose the schedule of a scheduler that has not begun.
        def begin(scheduler) = Native.explore_random(scheduler, seed)
      end

      # By seed, with priorities.
      Priorities = Data.define(:seed, :depth, :steps) do
        # (see Random#begin)
        def begin(scheduler) = Native.explore_priorities(scheduler, seed, depth, steps)
      end

      # By what differs from the schedule that Heddle takes by itself: Arrays of the number of a fiber, the number of
      # its decision, and the number of the fiber that is next. Fibers are numbered from 0.
      Recorded = Data.define(:deviations, :keeps_decisions) do
        def initialize(deviations:, keeps_decisions: false) = super

        # (see Random#begin)
        def begin(scheduler) = Native.explore_recorded(scheduler, deviations, keeps_decisions)
      end

      PART = /\d{1,9}\.\d{1,9}>\d{1,9}/
      WHOLE = /\A#{PART}(,#{PART})*\z/
      NONE = "none"
      private_constant :PART, :WHOLE, :NONE

      # @param deviations [Array<Array(Integer, Integer, Integer)>]
      # @return [String]
      def self.text(deviations)
        return NONE if deviations.empty?

        deviations.map { |from, point, to| "#{from}.#{point}>#{to}" }.join(",")
      end

      # @return [Array<Array(Integer, Integer, Integer)>]
      # @raise [ArgumentError]
      def self.parse(text, name)
        return [] if text == NONE

        unless text.b.match?(WHOLE)
          raise ArgumentError, "#{name}: #{text.inspect} is no schedule: a report prints it, as in 0.7>2,2.3>0"
        end

        text.scan(/\d+/).map { |digits| Integer(digits, 10) }.each_slice(3).to_a
      end

      # The schedules in a file, one in each line, which were kept because they have failed.
      #
      # @param path [String, #to_path]
      # @return [Array<Array>] the deviations of each; empty if there is no such file
      # @raise [ArgumentError] for a line that is no schedule
      # @raise [SystemCallError]
      def self.read(path)
        return [] unless File.exist?(path)

        lines = File.readlines(path, chomp: true).reject(&:empty?)
        lines.map { |line| parse(line, "the schedules of #{path}") }
      end

      # Adds a schedule to the file, unless it is there.
      #
      # @param path [String, #to_path]
      # @param text [String]
      # @raise [SystemCallError]
      def self.keep(path, text)
        return if read(path).include?(parse(text, text))

        # A file that was edited may end without a newline.
        newline = "\n" unless !File.exist?(path) || File.read(path).match?(/(\A|\n)\z/)
        File.write(path, "#{newline}#{text}\n", mode: "a")
      end
    end
    private_constant :Schedule
  end
end
