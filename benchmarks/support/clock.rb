# frozen_string_literal: true

# The clocks of all measurements, in seconds. Durations are wall-clock time that no one can set; what a process costs is
# its CPU time, with all of its threads, the kernel's io_uring workers for it included.
module Clock
  module_function

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end
