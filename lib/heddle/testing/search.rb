# frozen_string_literal: true

module Heddle
  module Testing
    # Takes all schedules within a bound on preemptions, those with few deviations first: iterative context bounding
    # (Musuvathi and Qadeer 2007). Each schedule extends an earlier one by a deviation after its last.
    class Search
      # @param preemptions [Integer] how many preemptions a schedule may have
      # @param runs [Integer] how many schedules are taken at most
      # @yieldparam schedule [Schedule::Recorded]
      # @yieldreturn [Run::Outcome]
      def initialize(preemptions:, runs:, &run)
        @preemptions = preemptions
        @runs = runs
        @run = run
        @waiting = [[[], 0]]
        @complete = true
      end

      # @return [Boolean] whether {find} has taken all schedules within the bounds
      def complete? = @complete

      # No further schedule is taken.
      def stop = @runs = 0

      # @return [Array(Run::Outcome, Schedule::Recorded), nil] the first run that fails
      def find
        until @waiting.empty?
          return @complete = nil if (@runs -= 1).negative?

          deviations, preemptions = @waiting.shift
          schedule = Schedule::Recorded.new(deviations:, keeps_decisions: true)
          outcome = @run.call(schedule)
          return [outcome, schedule] if outcome.error

          extend_schedule(deviations, preemptions, outcome.decisions)
        end
      end

      private

      def extend_schedule(deviations, preemptions, decisions)
        # There are more schedules than will be taken.
        return if @waiting.size > @runs

        after(decisions, deviations.last).each do |from, point, is_preemption, options, to|
          count = preemptions + (is_preemption ? 1 : 0)
          next if count > @preemptions

          (options - [to]).each { |other| @waiting << [[*deviations, [from, point, other]], count] }
        end
      end

      # The decisions after the last deviation.
      def after(decisions, last)
        index = last && decisions.index { |from, point,| [from, point] == last.first(2) }
        decisions.drop(index ? index + 1 : 0)
      end
    end
    private_constant :Search
  end
end
