# frozen_string_literal: true

module Heddle
  module Traces
    # The names that fibers have while a trace runs.
    class FiberNames
      # How many are kept, the latest.
      MOST = 100_000
      private_constant :MOST

      def initialize
        @present = {}
        @last = {}
        @log = {}
        @count = 0
      end

      # Keeps the names that fibers have when the trace begins. The block fills a Hash with them.
      def note_present
        yield @present
        @present.transform_values! { |name| Text.of_name(name) }
      end

      # A fiber gets a name, or loses it.
      #
      # @return [Integer] a number for {at}
      def add(fiber, name)
        name = Text.of_name(name)
        number = @count += 1
        @log[number] = name
        @log.shift if @log.size > MOST
        remember(fiber.object_id, name) if name
        number
      end

      # @return [String, nil] the name with this number
      def at(number) = @log[number]

      # @param id [Integer, nil] a fiber's `object_id`
      # @return [String, nil] its name when the trace began
      def first_of(id) = @present[id]

      # @return [String, nil] the last name that it had
      def last_of(id) = @last[id] || @present[id]

      private

      def remember(id, name)
        @last.delete(id)
        @last.shift if @last.size >= MOST
        @last[id] = name
      end
    end
    private_constant :FiberNames
  end
end
