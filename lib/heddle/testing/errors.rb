# frozen_string_literal: true

module Heddle
  module Testing
    # A schedule under which the program fails. The cause is the program's error. The message tells the schedule.
    class Failure < Error
      # @return [Integer, nil] replays the run: `seed:`, or `HEDDLE_SEED`; nil for a schedule without a seed
      attr_reader :seed
      # @return [String] replays the shortened schedule: `schedule:`, or `HEDDLE_SCHEDULE`
      attr_reader :schedule
      # @return [Integer] in how many places of the shortened schedule a limit elapses, or another fiber runs than
      #   without a test
      attr_reader :switches

      # @api private
      def initialize(message, seed:, schedule:, switches:, story:)
        super(message)
        @seed = seed
        @schedule = schedule
        @switches = switches
        @story = story
      end

      # Writes the schedule as a trace, which https://ui.perfetto.dev opens. Each fiber is a track; a step takes a
      # microsecond.
      #
      # @param target [String, #to_path, #write] as {Heddle.trace} takes it
      # @return [nil]
      # @raise [TypeError, SystemCallError] as {Heddle.trace} does
      # @example
      #   begin
      #     Heddle::Testing.explore { program }
      #   rescue Heddle::Testing::Failure => e
      #     e.write_trace("failure.json")
      #   end
      def write_trace(target)
        @story.write_trace(target)
      end
    end

    # An error of a run whose virtual clock has jumped over a wait for the outside. A module, as an error with a method
    # of its own could not be marshalled; in this file, as another process may read it.
    module JumpedOver
      # @return [String]
      def detailed_message(**) = "#{super}\n#{@heddle_jumps}"
    end
    private_constant :JumpedOver

    # The program cannot follow a recorded schedule. The message says where.
    class Diverged < Error; end

    # Fibers of one run have locked in different orders, so they may wait for each other for ever. The message says
    # where.
    class LockOrder < Error; end

    # Fibers of one run have used a variable or an object, one of them writing it, and nothing has ordered them. The
    # message says which, and where.
    class Race < Error; end

    # All fibers of the program wait, and nothing can wake one. No `rescue` of StandardError catches it.
    class Deadlock < Exception; end # rubocop:disable Lint/InheritException -- the program must not continue

    # The program has passed more points than `steps:` allows. No `rescue` of StandardError catches it.
    class NeverEnds < Exception; end # rubocop:disable Lint/InheritException -- the program must not continue
  end
end
