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
      private_constant :LIMIT, :IDLE_TIME

      def initialize
        @receivers = []
        @recorders = []
        @mutex = Mutex.new
        @reports = Thread::Queue.new
        @generation = Native.generation
      end

      # @param receiver [#call]
      def add(receiver) = change { [*@receivers, receiver] }

      # @param receiver [#call]
      def remove(receiver) = change { @receivers.reject { |each| each.equal?(receiver) } }

      # Adds a receiver of Heddle's own, beside which a line is still written where the program has no receiver.
      #
      # @param recorder [#call]
      def record(recorder)
        @mutex.synchronize { @recorders += [recorder] }
      end

      # @param stall [Stall]
      def report(stall)
        @mutex.synchronize do
          forget_parent unless @generation == Native.generation
          @reports.push(-> { deliver(stall) }) if @reports.size < LIMIT
          @thread = WorkContext.thread("heddle stalls") { run } unless @thread&.alive?
        end
      end

      # Waits until the receivers have got all reports so far, for a number of seconds at most.
      def finish(limit)
        done = Thread::Queue.new
        return unless @mutex.synchronize { @reports.push(-> { done << true }) if @thread&.alive? }

        done.pop(timeout: limit)
      end

      private

      # In a forked child the thread is not alive, and what it had to report is the parent's.
      def forget_parent
        @generation = Native.generation
        @reports.clear
      end

      def run
        while (report = @reports.pop(timeout: IDLE_TIME) || @mutex.synchronize { finish_or_pop })
          report.call
        end
      end

      def change
        @mutex.synchronize { @receivers = yield }
      end

      def deliver(stall)
        @recorders.each { |recorder| call(recorder, stall) }
        @receivers.each { |receiver| call(receiver, stall) }
        Reports.write { "heddle: #{stall}\n" } if @receivers.empty?
      end

      # Within the mutex, so that a report that comes now starts another thread.
      def finish_or_pop
        return @reports.pop unless @reports.empty?

        @thread = nil
      end

      def call(receiver, stall)
        receiver.call(stall)
      rescue Exception => e # rubocop:disable Lint/RescueException -- whatever it is, it must not end the thread
        Reports.write { "heddle: a receiver of Heddle.on_stall raised #{e.class}: #{e.message}\n" }
      end
    end
    private_constant :Receivers
  end
end
