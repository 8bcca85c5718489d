# frozen_string_literal: true

module Heddle
  # Waits for children that no descriptor tells of: any child, a process group, one that stops or continues.
  module ProcessWait
    # `$?` belongs to a thread, so the status is handed back, and Ruby sets it for the caller.
    #
    # @param pid [Integer] as Process.wait takes it
    # @param flags [Integer] likewise
    # @return [Process::Status]
    def self.call(pid, flags)
      thread = Thread.new do
        Thread.current.report_on_exception = false
        Process::Status.wait(pid, flags)
      end
      thread.value
    ensure
      thread&.kill
    end
  end
  private_constant :ProcessWait
end
