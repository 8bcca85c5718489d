# frozen_string_literal: true

module Heddle
  module Traces
    # Makes a trace's events of its records.
    class Timeline
      # See `TraceRecord` in `ext/core/src/observe/trace.rs`.
      Record = Struct.new(:time, :fiber, :detail, :value, :track, :kind, :what)
      # The track of the process.
      Place = Data.define(:pid, :tid)
      PROCESS = Place.new(pid: 1, tid: 1)
      FORMAT = "Q<Q<Q<l<L<CC"
      SIZE = 34
      # How many records are converted at a time.
      BATCH = 500
      COLLECTION = 9
      private_constant :Place, :PROCESS, :FORMAT, :SIZE, :BATCH, :COLLECTION

      # @return [Events]
      attr_reader :events
      # @return [Waits]
      attr_reader :waits

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

      # A fiber's track, with its name.
      #
      # @param scheduler [SchedulerTrack]
      # @param track [Integer] its number
      # @param number [Integer] the fiber's
      # @return [FiberTrack]
      def fiber(scheduler, track, number)
        id = @recorder.fiber_id(track, number)
        fiber = FiberTrack.new(@events, @waits, scheduler.pid, id || odd(number))
        unless @named[fiber.tid]
          @named[fiber.tid] = true
          fiber.rename(@names.first_of(id))
          @events.name(fiber, "thread", @names.last_of(id) || "fiber #{id || "of unknown id"}")
        end
        fiber
      end

      # @return [FiberTrack, nil] the fiber with this number, if it runs
      def running_fiber(track, number)
        @schedulers[track]&.running_fiber(number)
      end

      # @return [String, nil]
      def name_at(number) = @names.at(number)

      private

      # There was no memory for the fiber's id. No fiber has an odd one.
      def odd(number) = ((number % (2**32)) * 8) + 3

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
        record.kind == COLLECTION ? add_collection(record) : scheduler(record.track).add(record)
      end

      def scheduler(number)
        @schedulers[number] ||=
          SchedulerTrack.new(self, number, PROCESS.pid + 1 + @schedulers.size, @threads.fetch(number, "unknown"))
      end

      # It is shown for the process, and in the fiber in which it happened.
      def add_collection(record)
        times = record.time..(record.time + record.detail)
        @events.slice(PROCESS, times, "GC", "gc")
        running = @tracks_of.fetch(record.fiber, []).filter_map { |number| @schedulers[number]&.running }
        fiber = running.find { |each| each.running_since?(record.time) }
        @events.slice(fiber, times, "GC", "gc") if fiber
      end

      def close(ends)
        @schedulers.each_value do |scheduler|
          scheduler.close(ends)
          yield @events.take
        end
        yield @events.take
      end
    end
    private_constant :Timeline
  end
end
