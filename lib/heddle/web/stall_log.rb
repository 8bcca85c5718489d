# frozen_string_literal: true

module Heddle
  class Web
    # The last stalls of this process.
    #
    # @api private
    class StallLog
      LIMIT = 50
      # A stall, and when it began, in seconds since 1970.
      Entry = Data.define(:stall, :at)
      private_constant :LIMIT, :Entry

      @entries = []
      @mutex = Mutex.new

      class << self
        # A stall is reported while it lasts, and again when it has ended; the second report replaces the first.
        #
        # @param stall [Stall]
        def add(stall)
          @mutex.synchronize do
            # A forked child begins with an empty list.
            @entries = [] unless @generation == Native.generation
            @generation = Native.generation
            earlier = @entries.rindex { |entry| same?(entry.stall, stall) }
            entry = Entry.new(stall, earlier ? @entries.delete_at(earlier).at : Time.now.to_f - stall.duration)
            @entries = [*@entries.last(LIMIT - 1), entry]
          end
        end

        # @return [Array<Entry>] the latest last
        def entries = @generation == Native.generation ? @entries : []

        private

        def same?(earlier, stall)
          !earlier.ended? && earlier.thread.equal?(stall.thread) && earlier.count == stall.count &&
            earlier.location == stall.location
        end
      end

      # It has no parameters.
      def initialize(*); end

      # @return [nil] the report is made anew for each request: there are few stalls
      def key = nil

      # @return [Hash] the latest stall first
      def to_h
        { pid: Process.pid, limit: LIMIT, stalls: StallLog.entries.reverse.map { |entry| describe(entry) } }
      end

      private

      def describe(entry)
        stall = entry.stall
        { at: entry.at, thread: StatsReport.label(stall.thread), fiber: Text.clean(stall.fiber),
          location: Text.clean(stall.location), native_method: Text.clean(stall.native_method),
          called_from: Text.clean(stall.called_from),
          duration: stall.duration, ended: stall.ended?, late_fibers: stall.late_fibers, latest_by: stall.latest_by,
          count: stall.count, backtrace: stall.backtrace.map { |line| Text.clean(line) } }
      end

      Stalls.record(method(:add))
    end
    private_constant :StallLog
  end
end
