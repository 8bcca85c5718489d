# frozen_string_literal: true

module Heddle
  module Traces
    # A trace, from its beginning until it is written.
    class Session
      THREAD = "heddle trace"
      # How many batches are written until other threads run, which takes some 20 ms.
      BATCHES_PER_TURN = 10
      private_constant :THREAD, :BATCHES_PER_TURN

      # Begins to record.
      #
      # @param recorder [TraceRecorder]
      # @param target [String, #to_path, #write]
      def initialize(recorder, target)
        # In a trap handler even a library that is loaded cannot be required.
        require "json" unless defined?(JSON)
        @recorder = recorder
        @names = FiberNames.new
        # Both are closed: one when the block has ended, the other when the trace is written.
        @ended = Thread::Queue.new
        @written = Thread::Queue.new
        @output = Output.new(target, "Heddle.trace")
        @names.note_present { |names| recorder.start(names) }
        begun = true
      ensure
        abandon unless begun
      end

      # Records while the block runs.
      #
      # @return [TraceSummary, nil] nil in a forked child
      def during
        yield
        completed = true
        finish
      ensure
        finish_quietly unless completed
      end

      # Ends the recording after this time, whatever happens meanwhile.
      def finish_after(seconds)
        thread do
          @ended.pop(timeout: seconds)
          finish
        end
      end

      # Ends the recording, if it has not ended, and waits until the trace is written.
      #
      # @return [TraceSummary, nil] nil in a forked child
      # @raise what writing raises
      def finish
        return if @recorder.inherited?

        @ended.close
        counts = @recorder.finish
        write_in_thread(counts) if counts
        @written.pop
        raise @error if @error

        @summary or raise Error, "Heddle.trace: the thread that writes the trace was killed"
      end

      # A fiber gets a name, or loses it.
      def name(fiber, name)
        @recorder.name(fiber, @names.add(fiber, name))
      end

      private

      # A thread, and not the calling fiber, writes: it disturbs no fiber, and if the calling fiber is stopped, the
      # trace is written all the same.
      def thread
        WorkContext.thread(THREAD) do
          Thread.current.report_on_exception = false
          yield
        end
      end

      def write_in_thread(counts)
        thread { write(*counts) }
      rescue ThreadError
        # The system has no threads left.
        write(*counts)
      end

      def write(events, dropped, seconds, ends)
        timeline = Timeline.new(@recorder, @names, dropped)
        @output.open do |io|
          about = { version: VERSION, ruby: RUBY_DESCRIPTION, events:, dropped:, seconds: }
          io.write(%({"displayTimeUnit":"ms","otherData":#{JSON.generate(about)},"traceEvents":[\n))
          write_events(io, timeline, ends)
          io.write("\n]}\n")
        end
        @summary = TraceSummary.new(path: @output.path, events:, dropped:, seconds:)
      rescue Exception => e # rubocop:disable Lint/RescueException -- whatever it is, the caller gets it
        @error = e
      ensure
        Traces.forget(self)
        @written.close
      end

      def write_events(io, timeline, ends)
        separator = ""
        timeline.each_batch(ends).with_index(1) do |events, count|
          # Other threads wait no longer than that. They may keep Ruby's lock for 0.1 s each time.
          Thread.pass if (count % BATCHES_PER_TURN).zero?
          next if events.empty?

          io.write("#{separator}#{JSON.generate(events)[1..-2]}")
          separator = ",\n"
        end
      end

      # The block was left by an exception or a jump, which an error of the output must not replace.
      def finish_quietly
        finish
      rescue SystemCallError, IOError => e
        Reports.write { "heddle: the trace was not written: #{e.message} (#{e.class})\n" }
      end

      def abandon
        @recorder.finish
        @output&.close
        Traces.forget(self)
      end
    end
    private_constant :Session
  end
end
