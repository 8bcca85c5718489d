# frozen_string_literal: true

module Heddle
  module Traces
    # What a scheduler does, as far as the records have been read: a "process" of the trace. Its own track has polls.
    class SchedulerTrack
      # See `Kind` in `ext/core/src/observe/trace.rs`. The methods take a {Timeline::Record}.
      METHODS = %i[switch leave wake end_fiber begin_operation end_operation attempt poll stall collection name
                   waiting shut].freeze
      POLLS = ["poll", "wait in the kernel"].freeze
      SOURCES = [nil, "timer", "another thread"].freeze
      BY_FIBER = 0
      private_constant :METHODS, :POLLS, :SOURCES, :BY_FIBER

      # @return [Integer]
      attr_reader :pid, :tid
      # @return [FiberTrack, nil]
      attr_reader :running

      # @param timeline [Timeline]
      # @param number [Integer] its track's number
      # @param pid [Integer]
      # @param thread [String] what its thread is called
      def initialize(timeline, number, pid, thread)
        @timeline = timeline
        @events = timeline.events
        @number = number
        @pid = pid
        # An odd number: those of fibers are even.
        @tid = (pid * 8) + 1
        @fibers = {}
        @operations = Operations.new(@events)
        @events.name(self, "process", "Heddle scheduler, thread #{thread}", sort_index: @pid)
        @events.name(self, "thread", "polls", sort_index: -1)
      end

      # @param record [Timeline::Record]
      def add(record)
        __send__(METHODS.fetch(record.kind), record)
      end

      # @return [FiberTrack, nil] if the fiber with this number runs
      def running_fiber(number)
        found = @fibers[number]
        found if @running.equal?(found)
      end

      # The trace ends.
      def close(time)
        @fibers.each_value { |fiber| fiber.close(time) }
        @fibers.clear
        @operations.close(time)
        @running = nil
      end

      private

      def fiber(number)
        @fibers[number] ||= @timeline.fiber(self, @number, number)
      end

      def switch(record)
        @running&.stop(@timeline.waits.of(record))
        @running = @last = fiber(record.fiber)
        @running.run(record.time)
      end

      def leave(record)
        @running&.stop(@timeline.waits.of(record))
        @running = nil
      end

      def wake(record)
        woken = fiber(record.fiber)
        return if woken.runs_or_is_woken?
        return woken.wake(record.time, SOURCES[record.what]) unless record.what == BY_FIBER

        waker = @timeline.running_fiber(record.value, record.detail)
        return woken.wake(record.time, "a fiber") unless waker

        arrow = @events.next_id
        woken.wake(record.time, "fiber #{waker.tid}", arrow)
        @events.flow_start(waker, record.time, arrow)
      end

      # A later fiber has another number, and so has a fiber that is not Heddle's own at its next hook.
      def end_fiber(record)
        ended = @fibers.delete(record.fiber)
        ended&.end(record.time)
        @running = nil if ended.equal?(@running)
      end

      def begin_operation(record)
        @operations.begin(record, fiber(record.fiber))
      end

      def end_operation(record)
        @operations.end(record)
        return if record.what.zero?

        woken = fiber(record.fiber)
        woken.wake(record.time, "I/O") if woken.waits?
      end

      def attempt(record)
        running_fiber(record.fiber)&.then { |fiber| @operations.attempt(record, fiber) }
      end

      def poll(record)
        ends = record.time + record.detail
        @events.slice(self, record.time..ends, POLLS.fetch(record.what), "poll", completions: record.value)
      end

      # It may have ended the fiber.
      def stall(record)
        args = { seconds: record.detail / 1e9, late_fibers: record.value }
        @events.instant(@last, record.time, "stall", args) if @last
      end

      def name(record)
        fiber(record.fiber).rename(@timeline.name_at(record.detail), record.time)
      end

      def shut(record)
        close(record.time)
      end

      def waiting(record)
        fiber(record.fiber).waits(@timeline.waits.of(record))
      end
    end
    private_constant :SchedulerTrack
  end
end
