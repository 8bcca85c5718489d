# frozen_string_literal: true

# Examples with the tag `:timed`: their subject is real time. They compare with a control in the same run. Where the
# process had to wait for a CPU, a failure says nothing about Heddle: the example is skipped as inconclusive.
module Timed
  # Which part of its time a process may wait for a CPU.
  TOLERATED = 0.05
  NANOSECONDS = 1e9

  module_function

  # Runs the example, and skips it afterwards if it has failed on a machine that had no CPU for it.
  #
  # @param example [RSpec::Core::Example::Procsy]
  def judge(example)
    began = Clock.now
    before = waited
    example.run
    wait = waited - before
    total = Clock.now - began
    inconclusive(example.example, wait, total) if example.exception && wait > total * TOLERATED
  end

  def inconclusive(example, wait, total)
    example.instance_variable_set(:@exception, nil)
    reason = "inconclusive: waited #{wait.round(2)} of #{total.round(2)} s for a CPU"
    RSpec::Core::Pending.mark_skipped!(example, reason)
  end

  # Seconds for which the threads of this process were runnable and did not run. Linux does not tell it of children.
  def waited
    Dir.glob("/proc/self/task/*/schedstat").sum { |file| delay(file) } / NANOSECONDS
  end

  def delay(file)
    File.read(file).split[1].to_i
  rescue Errno::ENOENT, Errno::ESRCH
    0
  end
end
