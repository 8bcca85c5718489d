# frozen_string_literal: true

module Heddle # :nodoc:
  # Starts the ticker anew in a forked child, and the counts of {Metrics}. A fork copies neither the ticker's thread nor
  # its timer, so the child's fibers would no longer be preempted. The same holds for the thread that watches the signal
  # of {Heddle.dump_on}.
  #
  # The child has none of its parent's other fibers. What they held and waited for is free there, as Ruby has it for
  # threads: see `Scheduler::leave_fibers_in_parent` in the extension. Ruby frees only the locks of other threads, so
  # the extension looks into its Mutexes. It finds out here how they are stored; if it does not, such locks stay locked.
  module ProcessFork
    mutex = Thread::Mutex.new
    Native.find_mutexes(Fiber.new(blocking: true) { mutex.lock && Fiber.yield }.tap(&:resume), mutex)

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
