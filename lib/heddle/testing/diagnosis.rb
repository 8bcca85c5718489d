# frozen_string_literal: true

require "shellwords"

module Heddle
  module Testing
    # Finds out what a failing schedule needs in order to fail, and raises the {Failure} that tells it.
    class Diagnosis
      # @param settings [Settings]
      # @param command [Proc] returns the words of the command that runs this test
      # @yieldparam schedule [#begin] see {Schedule}
      # @yieldparam story [Story, nil]
      # @yieldreturn [Run::Outcome] what the program does under this schedule
      def initialize(settings, command, &run)
        @settings = settings
        @command = command
        @run = run
      end

      # @param error [Exception] what the run has come to
      # @param schedule [#begin] its schedule
      # @param seed [Integer, nil] its seed
      # @param number [Integer] how many runs there were until then
      # @raise [Failure]
      def fail_with(error, schedule, seed, number)
        first = @run.call(schedule, Story.new)
        second = @run.call(schedule, Story.new)
        difference = first.story.difference(second.story)
        is_repeated = Faults.same?(error, second.error, messages: false) && !difference
        return fail_unrepeatable(first.with(error:), seed, recorded(first, schedule), difference) unless is_repeated

        # A message that is another one each time says nothing.
        @messages = Faults.same?(error, second.error)
        outcome = shortened(error, second, schedule.data)
        recorded = recorded(outcome, schedule)
        @not_kept = keep(recorded)
        raise_failure(outcome, seed, recorded, head(seed, number, outcome.deviations.size))
      end

      # Says under which schedule the program exits, if it does. That ends the exploration, and leaves no report.
      #
      # @yield the run
      def telling_exit(schedule, number)
        yield
      rescue SystemExit
        replay = command(schedule.to_h[:seed], schedule)
        Reports.write { "Heddle::Testing.explore: the program exits in run #{number}. Replay: #{replay}\n" }
        raise
      end

      private

      def same?(error, other) = Faults.same?(error, other, messages: @messages)

      # @return [Schedule::Recorded] the schedule that the run of this one has come to
      def recorded(outcome, schedule) = Schedule::Recorded.new(deviations: outcome.deviations, data: schedule.data)

      # @return [Run::Outcome]
      def shortened(error, outcome, data)
        deviations = shrink(error, outcome.deviations, data)
        final = @run.call(Schedule::Recorded.new(deviations:, data:), Story.new)
        same?(error, final.error) ? final : outcome
      end

      def shrink(error, deviations, data)
        shrinking = Shrinking.new do |shorter|
          outcome = @run.call(Schedule::Recorded.new(deviations: shorter, data:, keeps_decisions: true), nil)
          [outcome, same?(error, outcome.error)]
        end
        shrinking.call(deviations)
      end

      def fail_unrepeatable(outcome, seed, schedule, difference)
        where = difference ? ": #{difference[0]} in one run, #{difference[1]} in the other" : ""
        head = "The same schedule does not give the same run again#{where}. Something outside of the schedule " \
               "decides: a thread, I/O, the clock, or what an earlier run has left behind."
        raise_failure(outcome, seed, schedule, head)
      end

      def head(seed, number, switches)
        found = seed ? "seed #{seed}, run #{number}" : "run #{number}"
        return "#{found}; the usual schedule fails, without a preemption:" if switches.zero?

        "#{found}; #{switches == 1 ? "one switch is" : "#{switches} switches are"} enough:"
      end

      def raise_failure(outcome, seed, schedule, head)
        report = Report.new(outcome.story, @settings.files)
        notes = [outcome.jumps&.to_note, write_trace(outcome.story), @not_kept].compact
        text = report.text(outcome.error, head, command(seed, schedule), notes)
        failure = Failure.new(text, seed:, schedule: schedule.to_s, switches: outcome.deviations.size,
                                    story: outcome.story)
        failure.set_backtrace(outcome.error.backtrace || caller)
        raise failure, cause: outcome.error
      end

      # @return [String, nil] why the trace is not written, which must not hide the failure
      def write_trace(story)
        story.write_trace(@settings.trace) if @settings.trace
        nil
      rescue StandardError => e
        "trace: the trace is not written: #{Text.clean(e.message)} (#{e.class})"
      end

      # @return [String, nil] why the schedule is not kept, which must not hide the failure
      def keep(schedule)
        Schedule.keep(@settings.keep, schedule) if @settings.keep
        nil
      rescue SystemCallError => e
        "keep: the schedule is not kept: #{Text.clean(e.message)} (#{e.class})"
      end

      def command(seed, schedule)
        words = @command.call.map { |word| Text.clean(word) }
        "#{seed ? "HEDDLE_SEED=#{seed}" : "HEDDLE_SCHEDULE='#{schedule}'"} #{Shellwords.join(words)}"
      end
    end
    private_constant :Diagnosis
  end
end
