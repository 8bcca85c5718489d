# frozen_string_literal: true

module Heddle
  module Traces
    # What a fiber does, as far as the records have been read.
    class FiberTrack
      # Nanoseconds; a slice that lasts for so long is marked.
      LONG = 100_000_000
      # Since when it waits, and what for; see {Waits}.
      Wait = Struct.new(:since, :kind, :value, :detail)
      # When and by what it was woken. An arrow has an id.
      Wake = Struct.new(:time, :by, :arrow)
      private_constant :LONG

      # @return [Integer]
      attr_reader :pid, :tid

      # @param events [Events]
      # @param waits [Waits]
      # @param pid [Integer]
      # @param tid [Integer]
      def initialize(events, waits, pid, tid)
        @events = events
        @waits = waits
        @pid = pid
        @tid = tid
      end

      # From now on it is called this.
      #
      # @param name [String, nil]
      # @param time [Integer, nil] nil if it was called this already when the trace began
      def rename(name, time = nil)
        end_name(time) if @period
        @name = name
        @period = NamedPeriod.new(name, time) if name
      end

      # @return [Boolean] whether its slice began by then
      def running_since?(time) = !@since.nil? && @since <= time

      # Its slice begins.
      def run(time)
        end_wait(time) if @wait
        @events.flow_end(self, time, @wake.arrow) if @wake&.arrow
        @wait = @wake = nil
        @since = time
      end

      # Its slice ends, and it waits.
      #
      # @param wait [Wait]
      def stop(wait)
        finish(wait.since)
        if wait.kind == :preempted
          @events.instant(self, wait.since, "preempted")
          @period&.preempted
        end
        @wait = wait
      end

      # Its slice ends, if it has one, and nothing more is known.
      def finish(time)
        return unless @since

        @period&.ran(@since..time)
        args = { long: true } if time - @since >= LONG
        @events.slice(self, @since..time, @name || "running", "slice", args)
        @since = nil
      end

      # It waits when the trace begins.
      #
      # @param wait [Wait]
      def waits(wait)
        @wait = wait
      end

      # @return [Boolean] whether a wake-up says nothing new
      def runs_or_is_woken? = !(@since || @wake).nil?

      # @return [Boolean] whether it is known to wait for something
      def waits? = !runs_or_is_woken? && !@wait.nil? && @waits.runnable_after(@wait).nil?

      # It becomes runnable.
      #
      # @param by [String] what has woken it
      # @param arrow [Integer, nil] the arrow's id
      def wake(time, by, arrow = nil)
        @wait ||= Wait.new(time, :start)
        @wake = Wake.new(time, by, arrow)
      end

      # The fiber ends.
      def end(time)
        finish(time)
        rename(nil, time)
      end

      # The trace ends.
      def close(time)
        finish(time)
        end_wait(time) if @wait
        @wait = nil
        rename(nil, time)
      end

      private

      def end_name(time)
        @period.ran(@since..time) if @since
        count_wait(time) if @wait
        @period.close(@events, self, time)
        @period = nil
      end

      def count_wait(time)
        woken_at = @waits.runnable_after(@wait) ? @wait.since : @wake&.time || time
        @period.waited(@wait.since..woken_at, @waits.counted(@wait)) if woken_at > @wait.since
        @period.runnable(woken_at..time)
      end

      def end_wait(time)
        count_wait(time) if @period
        woken_by = @wake&.by
        if (after = @waits.runnable_after(@wait))
          return runnable(@wait.since..time, woken_by || after)
        end

        woken_at = @wake ? @wake.time : time
        @events.slice(self, @wait.since..woken_at, @waits.text(@wait), "wait", woken_by:)
        runnable(woken_at..time, woken_by) if woken_by
      end

      def runnable(times, after)
        @events.slice(self, times, "runnable", "runnable", after:)
      end
    end
    private_constant :FiberTrack
  end
end
