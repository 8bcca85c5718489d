# frozen_string_literal: true

module Heddle
  # The part of the hook `process_wait` that is written in Ruby: waits in a thread for children that a pidfd cannot
  # describe. These are any child, a process group, and a child that stops or continues.
  #
  # There is one thread for each fiber that waits so, and it ends with the fiber's wait, as waiting for children on
  # threads takes a thread each. A lower limit could leave a fiber waiting for ever: the children of those before it may
  # live until that fiber has continued.
  module ProcessWait
    # Waits for a child. The extension calls this.
    #
    # `$?` belongs to a thread. So this returns the status, and Ruby sets `$?` in the calling thread.
    #
    # @param pid [Integer] as `Process.wait` takes it
    # @param flags [Integer] as `Process.wait` takes them
    # @return [Process::Status]
    def self.call(pid, flags)
      HelperThread.run { Process::Status.wait(pid, flags) }
    end
  end
  private_constant :ProcessWait
end
