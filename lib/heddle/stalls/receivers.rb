# frozen_string_literal: true

module Heddle
  module Stalls
    # Calls the receivers of {Heddle.on_stall}, on a thread of its own, one after the other. A receiver that blocks
    # delays later reports, and no fiber; when {LIMIT} reports wait, further ones are dropped. The thread ends when it
    # has had nothing to do for a while.
    #
    # @api private
    class Receivers
      # How many reports may wait.
      LIMIT = 100
      # Seconds.
      IDLE_TIME = 1
      # Ruby's IO for descriptor 2.
      ORIGINAL_STDERR = STDERR # rubocop:disable Style/GlobalStdStream -- `$stderr` may be another IO
      private_constant :LIMIT, :IDLE_TIME, :ORIGINAL_STDERR

      def initialize
        @receivers = []
        @recorders = []
        @mutex = Mutex.new
        @reports = Thread::Queue.new
      end

      # @param receiver [#call]
      def add(receiver)
        @mutex.synchronize { @receivers += [receiver] }
      end

      # Adds a receiver of Heddle's own, beside which a line is still written where the program has no receiver.
      #
      # @param recorder [#call]
      def record(recorder)
        @mutex.synchronize { @recorders += [recorder] }
      end

      # @param stall [Stall]
      # @param written [Boolean] whether a native thread has written the line
      def report(stall, written: false)
        @mutex.synchronize do
          @reports.push(-> { deliver(stall, written) }) if @reports.size < LIMIT
          # In a forked child the parent's thread is not alive.
          @thread = Thread.new { run }.tap { |thread| thread.name = "heddle stalls" } unless @thread&.alive?
        end
      end

      # Waits until the receivers have got all reports so far, for a number of seconds at most.
      def finish(limit)
        done = Thread::Queue.new
        return unless @mutex.synchronize { @reports.push(-> { done << true }) if @thread&.alive? }

        done.pop(timeout: limit)
      end

      private

      def run
        while (report = @reports.pop(timeout: IDLE_TIME) || @mutex.synchronize { finish_or_pop })
          report.call
        end
      end

      def deliver(stall, written)
        @recorders.each { |recorder| call(recorder, stall) }
        @receivers.each { |receiver| call(receiver, stall) }
        # A native thread writes to descriptor 2, which a program's own `$stderr` may not be.
        write(stall.to_s) if @receivers.empty? && !(written && $stderr.equal?(ORIGINAL_STDERR))
      end

      # Within the mutex, so that a report that comes now starts another thread.
      def finish_or_pop
        return @reports.pop unless @reports.empty?

        @thread = nil
      end

      def call(receiver, stall)
        receiver.call(stall)
      rescue Exception => e # rubocop:disable Lint/RescueException -- whatever it is, it must not end the thread
        write("a receiver of Heddle.on_stall raised #{e.class}: #{e.message}")
      end

      def write(line)
        $stderr.write("heddle: #{line}\n")
      rescue StandardError
        # If `$stderr` is closed, the report is lost.
        nil
      end
    end
    private_constant :Receivers
  end
end
