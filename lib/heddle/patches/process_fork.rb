# frozen_string_literal: true

module Heddle # :nodoc:
  # Starts the ticker anew in a forked child, and the counts of {Metrics}. A fork copies neither the ticker's thread nor
  # its timer, so the child's fibers would no longer be preempted. The same holds for the thread that watches the signal
  # of {Heddle.dump_on}.
  module ProcessFork
    # Ruby calls this for each fork; see `Process._fork`.
    def _fork
      super.tap do |pid|
        next unless pid.zero?

        Metrics.after_fork
        Native.forked
        DumpSignal.forked
      end
    end
  end
  private_constant :ProcessFork

  Patches.add { Process.singleton_class.prepend(ProcessFork) }
end
