# frozen_string_literal: true

module Heddle
  module Traces
    # Makes a trace's events of its records.
    class Timeline
      # See `TraceRecord` in `ext/core/src/observe/trace.rs`.
      Record = Struct.new(:time, :fiber, :detail, :value, :track, :kind, :what)
      # The method for each `Kind` there. It takes the scheduler and the record.
      METHODS = %i[switch leave wake end_fiber begin_operation end_operation attempt poll stall collection name
                   waiting shut].freeze
      COLLECTION = METHODS.index(:collection)
      # What has woken a fiber, by the numbers of `WakeSource` there.
      SOURCES = [nil, "timer", "another thread"].freeze
      BY_FIBER = 0
      POLLS = ["poll", "wait in the kernel"].freeze
      FORMAT = "Q<Q<Q<l<L<CC"
      SIZE = 34
      # How many records are converted at a time.
      BATCH = 500
      # The track of the process.
      Place = Data.define(:pid, :tid)
      PROCESS = Place.new(pid: 1, tid: 1)
      # A scheduler, as far as the records have been read: a "process" of the trace. Its own track has polls. `running`
      # is the {FiberTrack} that runs, and `last` the one that has run last.
      Scheduler = Struct.new(:number, :pid, :tid, :fibers, :operations, :running, :last)
      private_constant :METHODS, :COLLECTION, :SOURCES, :BY_FIBER, :POLLS, :FORMAT, :SIZE, :BATCH, :Place, :PROCESS,
                       :Scheduler

      # @param recorder [TraceRecorder] one that has ended
      # @param names [FiberNames]
      # @param dropped [Integer] how many records were dropped
      def initialize(recorder, names, dropped)
        @recorder = recorder
        @names = names
        @dropped = dropped
        @events = Events.new
        @waits = Waits.new(recorder)
        @threads = recorder.tracks.to_h { |number, name, _| [number, name] }
        @tracks_of = recorder.tracks.group_by(&:last).transform_values { |tracks| tracks.map(&:first) }
        @schedulers = {}
        @named = {}
      end

      # Calls the block with Arrays of events.
      #
      # @param ends [Integer] when the trace has ended
      # @return [Enumerator] without a block
      def each_batch(ends, &)
        return enum_for(__method__, ends) unless block_given?

        begin_process
        position = 0
        until (bytes = @recorder.records(position, BATCH)).empty?
          count = bytes.bytesize / SIZE
          note_dropped(bytes) if position.zero?
          bytes.unpack(FORMAT * count).each_slice(7) { |values| add(Record.new(*values)) }
          position += count
          yield @events.take
        end
        close(ends, &)
      end

      private

      def begin_process
        @events.name(PROCESS, "process", "Ruby, process #{Process.pid}", sort_index: 0)
        @events.name(PROCESS, "thread", "garbage collection")
      end

      def note_dropped(bytes)
        return unless @dropped.positive?

        text = "#{@dropped} earlier events were dropped"
        @events.instant(PROCESS, bytes.unpack1("Q<"), text, { dropped: @dropped }, category: "dropped")
      end

      def add(record)
        scheduler = scheduler(record.track) unless record.kind == COLLECTION
        __send__(METHODS.fetch(record.kind), scheduler, record)
      end

      def scheduler(number)
        @schedulers[number] ||= begin_scheduler(number)
      end

      def begin_scheduler(number)
        pid = PROCESS.pid + 1 + @schedulers.size
        # An odd number: those of fibers are even.
        scheduler = Scheduler.new(number, pid, (pid * 8) + 1, {}, Operations.new(@events))
        thread = @threads.fetch(number, "unknown")
        @events.name(scheduler, "process", "Heddle scheduler, thread #{thread}", sort_index: pid)
        @events.name(scheduler, "thread", "polls", sort_index: -1)
        scheduler
      end

      # @return [FiberTrack] the track of the fiber with this number, with its name
      def fiber(scheduler, number)
        scheduler.fibers[number] ||= begin_fiber(scheduler, number)
      end

      def begin_fiber(scheduler, number)
        id = @recorder.fiber_id(scheduler.number, number)
        fiber = FiberTrack.new(@events, @waits, scheduler.pid, id || odd(number))
        unless @named[fiber.tid]
          @named[fiber.tid] = true
          fiber.rename(@names.first_of(id))
          @events.name(fiber, "thread", @names.last_of(id) || "fiber #{id || "of unknown id"}")
        end
        fiber
      end

      # There was no memory for the fiber's id. No fiber has an odd one.
      def odd(number) = ((number % (2**32)) * 8) + 3

      # @return [FiberTrack, nil] the fiber with this number, if it runs
      def running_fiber(scheduler, number)
        return unless scheduler

        running = scheduler.running
        running if running.equal?(scheduler.fibers[number])
      end

      def switch(scheduler, record)
        leave(scheduler, record)
        scheduler.running = scheduler.last = fiber(scheduler, record.fiber)
        scheduler.running.run(record.time)
      end

      def leave(scheduler, record)
        scheduler.running&.stop(@waits.of(record))
        scheduler.running = nil
      end

      def wake(scheduler, record)
        woken = fiber(scheduler, record.fiber)
        return if woken.runs_or_is_woken?
        return woken.wake(record.time, SOURCES[record.what]) unless record.what == BY_FIBER

        waker = running_fiber(@schedulers[record.value], record.detail)
        return woken.wake(record.time, "a fiber") unless waker

        arrow = @events.next_id
        woken.wake(record.time, "fiber #{waker.tid}", arrow)
        @events.flow_start(waker, record.time, arrow)
      end

      # A later fiber has another number, and so has a fiber that is not Heddle's own at its next hook.
      def end_fiber(scheduler, record)
        ended = scheduler.fibers.delete(record.fiber)
        ended&.end(record.time)
        scheduler.running = nil if ended.equal?(scheduler.running)
      end

      def begin_operation(scheduler, record)
        scheduler.operations.begin(record, fiber(scheduler, record.fiber))
      end

      def end_operation(scheduler, record)
        scheduler.operations.end(record)
        return if record.what.zero?

        woken = fiber(scheduler, record.fiber)
        woken.wake(record.time, "I/O") if woken.waits?
      end

      def attempt(scheduler, record)
        running_fiber(scheduler, record.fiber)&.then { |fiber| scheduler.operations.attempt(record, fiber) }
      end

      def poll(scheduler, record)
        times = record.time..(record.time + record.detail)
        @events.slice(scheduler, times, POLLS.fetch(record.what), "poll", completions: record.value)
      end

      # It may have ended the fiber.
      def stall(scheduler, record)
        args = { seconds: record.detail / 1e9, late_fibers: record.value }
        @events.instant(scheduler.last, record.time, "stall", args) if scheduler.last
      end

      # It is shown for the process, and in the fiber in which it happened.
      def collection(_, record)
        times = record.time..(record.time + record.detail)
        @events.slice(PROCESS, times, "GC", "gc")
        running = @tracks_of.fetch(record.fiber, []).filter_map { |number| @schedulers[number]&.running }
        fiber = running.find { |each| each.running_since?(record.time) }
        @events.slice(fiber, times, "GC", "gc") if fiber
      end

      def name(scheduler, record)
        fiber(scheduler, record.fiber).rename(@names.at(record.detail), record.time)
      end

      def waiting(scheduler, record)
        fiber(scheduler, record.fiber).waits(@waits.of(record))
      end

      def shut(scheduler, record)
        close_scheduler(scheduler, record.time)
      end

      def close_scheduler(scheduler, time)
        scheduler.fibers.each_value { |fiber| fiber.close(time) }
        scheduler.fibers.clear
        scheduler.operations.close(time)
        scheduler.running = nil
      end

      def close(ends)
        @schedulers.each_value do |scheduler|
          close_scheduler(scheduler, ends)
          yield @events.take
        end
        yield @events.take
      end
    end
    private_constant :Timeline
  end
end
