# frozen_string_literal: true

# The clocks of all measurements, in seconds. `now` is monotonic. `cpu` is the CPU time of the process with all of its
# threads, including the kernel's io_uring workers.
module Clock
  module_function

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end
