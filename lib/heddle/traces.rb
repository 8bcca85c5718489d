# frozen_string_literal: true

require_relative "traces/output"
require_relative "traces/waits"
require_relative "traces/events"
require_relative "traces/fiber_names"
require_relative "traces/operations"
require_relative "traces/named_period"
require_relative "traces/fiber_track"
require_relative "traces/timeline"
require_relative "traces/session"

module Heddle # :nodoc:
  # What a trace has recorded.
  #
  # @!attribute [r] path
  #   @return [String, nil] the file; nil if the trace was written to an IO
  # @!attribute [r] events
  #   @return [Integer] how many recorded events the trace has. The file shows one event as several, or as none.
  # @!attribute [r] dropped
  #   @return [Integer] how many events were dropped, the oldest, because there were more than `events:`
  # @!attribute [r] seconds
  #   @return [Float] for how long events were recorded. If events were dropped, the trace has the last part of that.
  TraceSummary = Data.define(:path, :events, :dropped, :seconds)

  # The trace that this process records, if it records one.
  module Traces
    # The default of `events:`.
    EVENTS = 500_000
    # The values of `events:`. A record takes 40 bytes.
    VALID_EVENTS = 1..100_000_000

    @begun = false

    class << self
      # @param target [String, #to_path, #write]
      # @return [Session]
      def start(target, events)
        ArgumentChecks.count(events, "Heddle.trace: events", VALID_EVENTS)
        recorder = Native.reserve_trace(events)
        unless recorder
          raise Error, "Heddle.trace: a trace is being recorded already, and there can be one at a time: it ends " \
                       "with its seconds: or its block"
        end
        @session = Session.new(recorder, target)
        @begun = true
        @session
      end

      # Writes a trace of what was not recorded, but is known.
      #
      # @param target [String, #to_path, #write]
      # @param method [String] the public method, for messages
      # @yieldparam events [Events]
      # @return [nil]
      def write(target, method)
        require "json"
        events = Events.new
        yield events
        text = JSON.generate({ displayTimeUnit: "ns", traceEvents: events.take })
        Output.new(target, method).open { |io| io.write(text) }
        nil
      end

      # @return [Boolean] whether a trace is being recorded or written, by this process or the one that has forked it.
      #   Every Ractor may ask
      def begun? = @begun

      # A fiber gets a name, or loses it.
      def named(fiber, name)
        @session&.name(fiber, name) if Native.tracing?
      end

      # The session has written its trace, or failed to.
      def forget(session)
        return unless @session.equal?(session)

        @session = nil
        @begun = false
      end
    end
  end
  private_constant :Traces

  class << self
    # Records what all Heddle schedulers of this process do while the block runs, and writes it to a file that
    # https://ui.perfetto.dev and Chrome's `chrome://tracing` open. Each scheduler is a process there, and each fiber a
    # track, with its time slices, its waits and what it waits for, preemptions, what has woken it as an arrow, I/O
    # operations, garbage collections, and stalls. Each name that a fiber has had is an interval, which tells how long
    # the fiber ran, was runnable, and waited for what. `docs/observability.md` describes them.
    #
    # Schedulers that are opened meanwhile are recorded, too. Any thread may call this, with any scheduler or none. The
    # file is opened at once, and written when the recording has ended, by a thread. If the block raises, the trace is
    # written all the same. A forked child records and writes nothing.
    #
    # @param target [String, #to_path, #write] the file, which is replaced, or an IO. A file whose name ends in `.gz` is
    #   compressed. An IO is not closed.
    # @param seconds [Numeric, nil] how long to record. A block that takes longer continues, and the file is written
    #   meanwhile. Without a block the call waits so long, as `sleep` does.
    # @param events [Integer] how many events to keep. When there are more, the oldest are dropped, and the file and the
    #   summary say how many.
    # @yield what is recorded
    # @return [Object, TraceSummary] the block's value; without a block, what was recorded
    # @raise [Error] if a trace is being recorded already
    # @raise [ArgumentError] without a block and `seconds:`, for negative seconds, and for a number of events outside of
    #   1 to 100,000,000
    # @raise [TypeError] for a target that is neither a path nor has a method `write`
    # @raise [SystemCallError] if the file cannot be opened or written
    # @raise [NoMemoryError] if there is no memory for so many events
    # @raise the block's error
    # @example
    #   Heddle.run do
    #     Heddle.trace("trace.json.gz") { 3.times { |number| Heddle.spin(name: "sleeper #{number}") { sleep 0.1 } } }
    #   end
    # @example Five seconds of a server that runs
    #   summary = Heddle.trace("trace.json", seconds: 5)
    #   puts "#{summary.events} events, #{summary.dropped} dropped"
    def trace(target, seconds: nil, events: Traces::EVENTS)
      ArgumentChecks.seconds(seconds, "Heddle.trace") if seconds
      raise ArgumentError, "Heddle.trace needs a block, or seconds:" unless block_given? || seconds

      session = Traces.start(target, events)
      return session.during { sleep(seconds) } unless block_given?

      value = nil
      session.during do
        session.finish_after(seconds) if seconds
        value = yield
      end
      value
    end
  end
end
