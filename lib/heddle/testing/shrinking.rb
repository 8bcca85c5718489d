# frozen_string_literal: true

module Heddle
  module Testing
    # Finds a small part of a failing schedule that still fails: delta debugging (Zeller and Hildebrandt 2002). Of what
    # remains, it then replaces two deviations by one, as long as that fails, too.
    class Shrinking
      # How many schedules are tried to leave deviations out, and each time to replace two of them.
      MOST_TRIES = 500
      private_constant :MOST_TRIES

      # @yieldparam deviations [Array] a schedule
      # @yieldreturn [Array(Run::Outcome, Boolean)] what the run has come to, and whether it failed in the same way
      def initialize(&run)
        @run = run
      end

      # @param deviations [Array] a schedule that fails
      # @return [Array] one that fails, from which no deviation can be left out
      def call(deviations)
        deviations = leave_out(deviations)
        while deviations.size > 1 && (fewer = join(deviations))
          deviations = fewer
        end
        deviations
      end

      private

      def leave_out(deviations)
        @tries = 0
        return [] if attempt([])

        parts = 2
        while deviations.size > 1 && @tries < MOST_TRIES
          shorter = shorten(deviations, parts)
          if shorter
            deviations = shorter
            parts = [parts - 1, 2].max
          else
            break if parts >= deviations.size

            parts = [parts * 2, deviations.size].min
          end
        end
        deviations
      end

      # Leaves out one of the parts.
      def shorten(deviations, parts)
        deviations.each_slice((deviations.size / parts.to_f).ceil).lazy.filter_map do |part|
          shorter = attempt(deviations - part)
          shorter if shorter && shorter.size < deviations.size
        end.first
      end

      # Replaces two deviations by another one, or none.
      def join(deviations)
        @tries = 0
        deviations.combination(deviations.size - 2).lazy.filter_map { |kept| enlarge(kept, deviations.size) }.first
      end

      def enlarge(kept, size)
        outcome, fails = try(kept)
        return outcome.deviations if fails

        outcome.decisions.lazy.filter_map { |decision| add(kept, decision, size) }.first if outcome
      end

      def add(kept, decision, size)
        from, point, _, options, to = decision
        (options - [to]).lazy.filter_map do |other|
          found = attempt([*kept, [from, point, other]])
          found if found && found.size < size
        end.first
      end

      # @return [Array, nil] what the run really deviated by, if it failed in the same way
      def attempt(deviations)
        outcome, fails = try(deviations)
        outcome.deviations if fails
      end

      def try(deviations)
        return if @tries >= MOST_TRIES

        @tries += 1
        @run.call(deviations)
      end
    end
    private_constant :Shrinking
  end
end
