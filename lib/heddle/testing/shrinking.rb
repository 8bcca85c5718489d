# frozen_string_literal: true

module Heddle
  module Testing
    # Finds a small part of a failing schedule that still fails: delta debugging (Zeller and Hildebrandt 2002).
    class Shrinking
      # How many schedules are tried.
      MOST_TRIES = 500
      private_constant :MOST_TRIES

      # @yieldparam deviations [Array] a schedule
      # @yieldreturn [Array, nil] what the run really deviated by, if it failed in the same way
      def initialize(&fails)
        @fails = fails
        @tries = 0
      end

      # @param deviations [Array] a schedule that fails
      # @return [Array] one that fails, from which no deviation can be left out
      def call(deviations)
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

      private

      # Leaves out one of the parts.
      def shorten(deviations, parts)
        deviations.each_slice((deviations.size / parts.to_f).ceil).lazy.filter_map do |part|
          shorter = attempt(deviations - part)
          shorter if shorter && shorter.size < deviations.size
        end.first
      end

      def attempt(deviations)
        return if @tries >= MOST_TRIES

        @tries += 1
        @fails.call(deviations)
      end
    end
    private_constant :Shrinking
  end
end
