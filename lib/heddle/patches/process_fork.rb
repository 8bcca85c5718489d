# frozen_string_literal: true

module Heddle # :nodoc:
  # Starts the ticker anew in a forked child. A fork copies neither the ticker's thread nor its timer, so the child's
  # fibers would no longer be preempted.
  module ProcessFork
    # Ruby calls this for each fork; see `Process._fork`.
    def _fork
      super.tap { |pid| Scheduler.__send__(:forked) if pid.zero? }
    end
  end
  private_constant :ProcessFork

  Process.singleton_class.prepend(ProcessFork)
end
