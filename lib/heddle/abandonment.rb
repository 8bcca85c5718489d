# frozen_string_literal: true

module Heddle
  # A fiber was told to end, and has not ended in the time that it is given (`grace:`).
  module Abandonment
    # As many frames as tell what a fiber is doing.
    FRAMES = 8
    private_constant :FRAMES

    # Ends the fiber, or has the scheduler forget it, and says so on `$stderr`.
    #
    # @param block [Proc, nil] what the fiber runs
    # @param grace [Float] seconds
    def self.of(scheduler, fiber, block, grace)
      scheduler.__send__(:hold_back) do
        line = describe(fiber, block, grace)
        outcome = scheduler.__send__(:abandon, fiber)
        # A killed fiber tells of its end itself.
        Task.of(fiber)&.killed if %i[abandoned forgotten].include?(outcome)
        write(line) if %i[abandoned killed].include?(outcome)
      end
    end

    def self.describe(fiber, block, grace)
      name = UnhandledError.name(fiber, Task.of(fiber)&.block || block, "suspended")
      place = (fiber.backtrace(0, FRAMES) || []).join(", ")
      "#{name} has not ended #{grace} s after it was told to, and is abandoned. It was at: #{place}\n"
    end

    def self.write(line)
      $stderr.write(line)
    rescue StandardError
      # There is nobody left to tell.
      nil
    end
    private_class_method :describe, :write
  end
  private_constant :Abandonment
end
