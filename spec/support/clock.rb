# frozen_string_literal: true

# The clock. Programs in a Ruby of their own require this file, too.
module Clock
  PATH = __FILE__

  module_function

  # Seconds that never go back.
  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Seconds of CPU time that the process has used.
  def cpu
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  end
end
