# frozen_string_literal: true

module Heddle
  module Traces
    # Collects events in Chrome's JSON format for traces. Times are nanoseconds here, and microseconds there.
    class Events
      # The categories of instants that concern all tracks.
      GLOBAL = ["dropped"].freeze
      private_constant :GLOBAL

      def initialize
        @events = []
        @ids = 0
      end

      # @return [Array<Hash>] what was collected since the last call
      def take
        @events.tap { @events = [] }
      end

      # @return [Integer] a number for a flow or an operation
      def next_id = @ids += 1

      # @param track [#pid, #tid]
      # @param times [Range] from its beginning to its end
      def slice(track, times, name, category, args = nil)
        event = { ph: "X", name:, cat: category, ts: micro(times.begin), dur: micro(times.end - times.begin),
                  pid: track.pid, tid: track.tid }
        event[:args] = args if args
        @events << event
      end

      # @param track [#pid, #tid]
      # @param time [Integer]
      def instant(track, time, name, args = {}, category: name)
        scope = GLOBAL.include?(category) ? "g" : "t"
        @events << { ph: "i", name:, cat: category, ts: micro(time), pid: track.pid, tid: track.tid, s: scope, args: }
      end

      # The waker's end of an arrow.
      def flow_start(track, time, id)
        @events << { ph: "s", name: "wake", cat: "wake", id:, ts: micro(time), pid: track.pid, tid: track.tid }
      end

      # The woken fiber's end of an arrow.
      def flow_end(track, time, id)
        @events << { ph: "f", bp: "e", name: "wake", cat: "wake", id:, ts: micro(time), pid: track.pid, tid: track.tid }
      end

      # What may overlap with others of the same fiber. Its number is local to the scheduler: Perfetto shows events with
      # global numbers outside of all schedulers.
      #
      # @param track [#pid, #tid]
      # @param times [Range] from its beginning to its end
      # @param about [Hash] its name and category
      def interval(track, times, about, args, args_of_end = {})
        common = { **about, id2: { local: format("%#x", next_id) }, pid: track.pid, tid: track.tid }
        @events << { ph: "b", ts: micro(times.begin), **common, args: }
        @events << { ph: "e", ts: micro(times.end), **common, args: args_of_end }
      end

      # @param kind [String] `process` or `thread`
      def name(track, kind, name, sort_index: nil)
        meta(track, "#{kind}_name", { name: })
        meta(track, "#{kind}_sort_index", { sort_index: }) if sort_index
      end

      private

      def meta(track, name, args)
        @events << { ph: "M", name:, pid: track.pid, tid: track.tid, args: }
      end

      def micro(nanoseconds) = nanoseconds / 1000.0
    end
    private_constant :Events
  end
end
