# frozen_string_literal: true

module Heddle
  # Abandons a fiber that was told to end and has not ended within its time (`grace:`), and reports it.
  module Abandonment
    # The number of stack frames in the report.
    FRAMES = 8
    private_constant :FRAMES

    # Kills the fiber. If that does not end it, the scheduler forgets it. The extension calls this.
    #
    # @param scheduler [Scheduler]
    # @param fiber [Fiber]
    # @param block [Proc, nil] the fiber's block
    # @param grace [Float] seconds
    def self.abandon(scheduler, fiber, block, grace)
      scheduler.__send__(:defer_raises) do
        line = describe(fiber, block, grace)
        outcome = scheduler.__send__(:abandon, fiber)
        # A fiber that was killed reports its end to its task itself; these two cannot.
        Task.of(fiber)&.killed if %i[abandoned forgotten].include?(outcome)
        write(line) if %i[abandoned killed].include?(outcome)
      end
    end

    def self.describe(fiber, block, grace)
      name = UnhandledError.describe(fiber, Task.of(fiber)&.block || block, "suspended")
      place = (fiber.backtrace(0, FRAMES) || []).join(", ")
      "#{name} has not ended #{grace} s after it was told to, and is abandoned. It was at: #{place}\n"
    end

    def self.write(line)
      $stderr.write(line)
    rescue StandardError
      # If `$stderr` is closed, the report is lost.
      nil
    end
    private_class_method :describe, :write
  end
  private_constant :Abandonment
end
