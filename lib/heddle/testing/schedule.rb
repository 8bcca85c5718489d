# frozen_string_literal: true

module Heddle
  module Testing
    # The schedules of runs. Each tells the scheduler, which decides: see `ext/core/src/explore/exploration.rs`.
    module Schedule
      # By seed, at random.
      Random = Data.define(:seed) do
        # Begins to choose the schedule of a scheduler that has not begun.
        def begin(scheduler) = Native.explore_random(scheduler, seed)

        # @return [Integer] the seed of the program's `Random`
        def data = seed
      end

      # By seed, with priorities.
      Priorities = Data.define(:seed, :depth, :steps) do
        # (see Random#begin)
        def begin(scheduler) = Native.explore_priorities(scheduler, seed, depth, steps)

        # (see Random#data)
        def data = seed
      end

      # By what differs from the schedule that Heddle takes by itself: Arrays of the number of a fiber, the number of
      # its decision, and the number of the fiber that is next. Fibers are numbered from 0. `data` is the seed of the
      # program's `Random`.
      Recorded = Data.define(:deviations, :data, :keeps_decisions) do
        def initialize(deviations:, data: 0, keeps_decisions: false) = super

        # (see Random#begin)
        def begin(scheduler) = Native.explore_recorded(scheduler, deviations, keeps_decisions)

        # @return [String] see {Schedule.parse}
        def to_s
          parts = deviations.map { |from, point, to| "#{from}.#{point}>#{to}" }
          "#{"#{data}:" unless data.zero?}#{parts.empty? ? NONE : parts.join(",")}"
        end
      end

      PART = /\d{1,9}\.\d{1,9}>\d{1,9}/
      NONE = "none"
      WHOLE = /\A((?<data>\d{1,20}):)?(#{NONE}|(?<parts>#{PART}(,#{PART})*))\z/
      private_constant :PART, :NONE, :WHOLE

      # @param text [String]
      # @return [Recorded]
      # @raise [ArgumentError]
      def self.parse(text, name)
        found = WHOLE.match(text.b)
        unless found
          raise ArgumentError, "#{name}: #{text.inspect} is no schedule: a report prints it, as in 0.7>2,2.3>0"
        end

        numbers = found[:parts].to_s.scan(/\d+/).map { |digits| Integer(digits, 10) }
        Recorded.new(deviations: numbers.each_slice(3).to_a, data: Integer(found[:data] || "0", 10))
      end

      # The schedules in a file, one in each line, which were kept because they have failed.
      #
      # @param path [String, #to_path]
      # @return [Array<Recorded>] empty if there is no such file
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
      # @param schedule [Recorded]
      # @raise [SystemCallError]
      def self.keep(path, schedule)
        return if read(path).include?(schedule)

        # A file that was edited may end without a newline.
        newline = "\n" unless !File.exist?(path) || File.read(path).match?(/(\A|\n)\z/)
        File.write(path, "#{newline}#{schedule}\n", mode: "a")
      end
    end
    private_constant :Schedule
  end
end
