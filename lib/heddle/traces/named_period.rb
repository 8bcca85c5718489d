# frozen_string_literal: true

module Heddle
  module Traces
    # What a fiber has spent its time on while it had a name, as far as that was recorded. Times are nanoseconds.
    class NamedPeriod
      # @param name [String]
      # @param began [Integer, nil] nil for a name that the fiber had when the trace began
      def initialize(name, began = nil)
        @name = name
        @began = began
        @ran = @runnable = @preemptions = 0
        @waited = Hash.new(0)
      end

      # @param times [Range] may begin before the period
      def ran(times) = @ran += within(times)

      # @param times [Range]
      def runnable(times) = @runnable += within(times)

      # @param times [Range]
      # @param kind [Symbol]
      def waited(times, kind) = @waited[kind] += within(times)

      # The fiber was preempted.
      def preempted = @preemptions += 1

      # @param events [Events]
      # @param track [FiberTrack]
      # @param time [Integer] when it ends
      def close(events, track, time)
        began = @began || time
        args = { seconds: seconds(time - began), ran: seconds(@ran), runnable: seconds(@runnable),
                 waited: Accounting.sorted(@waited.transform_values { |spent| seconds(spent) }),
                 preemptions: @preemptions }
        events.interval(track, began..time, { name: @name, cat: "name" }, args)
      end

      private

      def within(times)
        @began ||= times.begin
        [times.end - [times.begin, @began].max, 0].max
      end

      def seconds(nanoseconds) = nanoseconds / 1e9
    end
    private_constant :NamedPeriod
  end
end
