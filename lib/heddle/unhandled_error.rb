# frozen_string_literal: true

module Heddle
  # Tells of an error that ended a fiber, as Ruby tells of one that ended a thread.
  module UnhandledError
    # @param error [Exception]
    # @param block [Proc] what the fiber ran
    # @return [Boolean] whether the error is to end the thread as well (`Thread#abort_on_exception=`)
    def self.report(error, block)
      thread = Thread.current
      if thread.report_on_exception
        head = "#{describe(block)} terminated with exception (report_on_exception is true):\n"
        $stderr.write(head + error.full_message(highlight: $stderr.tty?))
      end
      thread.abort_on_exception || Thread.abort_on_exception
    end

    def self.describe(block)
      file, line = block.source_location
      address = Fiber.current.inspect[/0x\h+/]
      "#<Fiber:#{address} #{file || "(native)"}:#{line} (resumed)>"
    end
    private_class_method :describe
  end
  private_constant :UnhandledError
end
