# frozen_string_literal: true

module Heddle
  # What Heddle writes to `$stderr`. The extension calls {unhandled} and {abandon}.
  module Reports
    # The number of stack frames in the report of an abandoned fiber.
    FRAMES = 8
    private_constant :FRAMES

    class << self
      # Reports an error that ended a fiber, in the way that Ruby reports an error that ended a thread: unless the
      # thread's `report_on_exception` is false.
      #
      # @param error [Exception]
      # @param block [Proc, nil] the fiber's block
      # @return [Boolean] whether the error ends the thread, too (`Thread#abort_on_exception=`)
      def unhandled(error, block)
        thread = Thread.current
        head = "#{describe(Fiber.current, block, "resumed")} terminated with exception (report_on_exception is true):\n"
        write { head + error.full_message } if thread.report_on_exception
        aborts = thread.abort_on_exception || Thread.abort_on_exception
        aborts && !(thread.is_a?(HostThread) && thread.raise_in_main(error))
      end

      # Abandons a fiber that was stopped and has not ended within its time (`grace:`), and reports it. Kills the
      # fiber; if that does not end it, the scheduler forgets it.
      #
      # @param scheduler [Scheduler]
      # @param fiber [Fiber]
      # @param block [Proc, nil] the fiber's block
      # @param grace [Float] seconds
      def abandon(scheduler, fiber, block, grace)
        Native.defer_raises(scheduler) do
          name = describe(fiber, TreeNode.of(fiber)&.block || block, "suspended")
          place = (fiber.backtrace(0, FRAMES) || []).join(", ")
          outcome = Native.abandon(scheduler, fiber)
          # A fiber that was killed reports its end to its task itself; these two cannot.
          TreeNode.of(fiber)&.killed if %i[abandoned forgotten].include?(outcome)
          next unless %i[abandoned killed].include?(outcome)

          write { "#{name} has not ended #{grace} s after it was stopped, and is #{outcome}. It was at: #{place}\n" }
        end
      end

      # Writes a text. If `$stderr` is closed, or the text cannot be made, it is lost: no fiber fails because of that.
      #
      # @yieldreturn [String]
      def write
        $stderr.write(yield)
      rescue StandardError
        nil
      end

      private

      # The fiber, as `inspect` shows a fiber that was made with this block, with its name.
      def describe(fiber, block, state)
        file, line = block&.source_location
        address = fiber.inspect[/0x\h+/]
        "#<Fiber:#{address}#{Names.suffix(fiber)} #{file || "(native)"}:#{line} (#{state})>"
      end
    end
  end
  private_constant :Reports
end
