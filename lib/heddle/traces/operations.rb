# frozen_string_literal: true

module Heddle
  module Traces
    # The reads, writes and other operations of a scheduler.
    class Operations
      # As in `ext/core/src/io/operations.rs`.
      KINDS = %w[ready read write receive send job].freeze
      ATTEMPTS = %w[read write].freeze
      private_constant :KINDS, :ATTEMPTS

      # @param events [Events]
      def initialize(events)
        @events = events
        @begun = {}
      end

      # @param record [Timeline::Record]
      # @param fiber [FiberTrack]
      def begin(record, fiber)
        @begun[record.detail] = [record, fiber]
      end

      # @param record [Timeline::Record]
      def end(record)
        begun, fiber = @begun.delete(record.detail)
        add(begun, fiber, record.time, record.value) if begun
      end

      # A system call within the fiber's slice, which did not wait.
      #
      # @param record [Timeline::Record]
      # @param fiber [FiberTrack]
      def attempt(record, fiber)
        result = [record.detail].pack("L").unpack1("l")
        args = { fd: record.value, result: outcome(result) }
        @events.instant(fiber, record.time, ATTEMPTS.fetch(record.what), args, category: "io")
      end

      # The trace ends.
      def close(time)
        @begun.each_value { |begun, fiber| add(begun, fiber, time, nil) }
        @begun.clear
      end

      private

      def add(begun, fiber, time, result)
        name = KINDS.fetch(begun.what)
        args = { fiber: fiber.tid }
        args[:fd] = begun.value if begun.value >= 0
        # The result of the first kind is a set of bits.
        result = name if name == KINDS.first && result&.positive?
        @events.interval(fiber, begun.time..time, { name:, cat: "operation" }, args, { result: outcome(result) })
      end

      # @return [Integer, String, nil] the number of bytes, or the error's name
      def outcome(result)
        return result unless result.is_a?(Integer) && result.negative?

        SystemCallError.new(nil, -result).class.name.delete_prefix("Errno::")
      end
    end
    private_constant :Operations
  end
end
