# frozen_string_literal: true

module Heddle
  # Tells of an error that ended a fiber, as Ruby tells of one that ended a thread.
  module UnhandledError
    # @param error [Exception]
    # @param block [Proc] what the fiber ran
    # @return [Boolean] whether the error is to end the thread as well (`Thread#abort_on_exception=`)
    def self.report(error, block)
      thread = Thread.current
      head = "#{name(Fiber.current, block, "resumed")} terminated with exception (report_on_exception is true):\n"
      write(head, error) if thread.report_on_exception
      thread.abort_on_exception || Thread.abort_on_exception
    end

    def self.write(head, error)
      tty = $stderr.respond_to?(:tty?) && $stderr.tty?
      $stderr.write(head + error.full_message(highlight: tty))
    rescue StandardError
      # There is nobody left to tell. The other fibers are not to suffer for it.
      nil
    end

    # @return [String] what Ruby's `inspect` says of a fiber that was made with this block
    def self.name(fiber, block, state)
      file, line = block&.source_location
      address = fiber.inspect[/0x\h+/]
      "#<Fiber:#{address} #{file || "(native)"}:#{line} (#{state})>"
    end
    private_class_method :write
  end
  private_constant :UnhandledError
end
