# frozen_string_literal: true

module Heddle
  # Reports an error that ended a fiber, in the way that Ruby reports an error that ended a thread.
  module UnhandledError
    # Writes to `$stderr`, unless the thread's `report_on_exception` is false. The extension calls this.
    #
    # @param error [Exception]
    # @param block [Proc, nil] the fiber's block
    # @return [Boolean] whether the error ends the thread, too (`Thread#abort_on_exception=`)
    def self.report(error, block)
      thread = Thread.current
      head = "#{describe(Fiber.current, block, "resumed")} terminated with exception (report_on_exception is true):\n"
      write(head, error) if thread.report_on_exception
      thread.abort_on_exception || Thread.abort_on_exception
    end

    def self.write(head, error)
      tty = $stderr.respond_to?(:tty?) && $stderr.tty?
      $stderr.write(head + error.full_message(highlight: tty))
    rescue StandardError
      # If `$stderr` is closed, the report is lost. The other fibers must not fail because of that.
      nil
    end

    # @param fiber [Fiber]
    # @param block [Proc, nil]
    # @param state [String]
    # @return [String] the fiber, as `inspect` shows a fiber that was made with this block, with its name
    def self.describe(fiber, block, state)
      file, line = block&.source_location
      address = fiber.inspect[/0x\h+/]
      "#<Fiber:#{address}#{Names.suffix(fiber)} #{file || "(native)"}:#{line} (#{state})>"
    end
    private_class_method :write
  end
  private_constant :UnhandledError
end
