# frozen_string_literal: true

require "etc"
require "shellwords"
require_relative "clock"

# What this machine has and allows: processors to pin to, descriptors, the tools that a benchmark uses. The report names
# what is missing.
module Machine
  SERVER = 0
  CLIENT = 1
  DESCRIPTORS = Process::RLIMIT_NOFILE
  # Seconds in which a loop looks whether other programs run.
  WATCHED = 1.0
  # Seconds. A machine with a longer gap is not idle.
  LONGEST_GAP = 0.002

  module_function

  def tool(name)
    ENV["PATH"].split(File::PATH_SEPARATOR).map { |folder| "#{folder}/#{name}" }.find { |file| File.executable?(file) }
  end

  # Ends the program, which can measure nothing without this tool.
  def need(name)
    abort "#{name} must be installed: apt-get install #{name}" unless tool(name)
  end

  # The command pinned to one processor, if taskset is installed and there is that processor.
  def on(processor, command)
    return command unless processor && reach?(processor)

    [*pinned(processor), *command]
  end

  # Tries it: in a process that is pinned itself, `Etc.nprocessors` counts its own processor only.
  def reach?(processor)
    tool("taskset") && system(*pinned(processor), "true", out: File::NULL, err: File::NULL)
  end

  def pinned(processor) = ["taskset", "-c", processor.to_s]

  # Raises the limit of descriptors as far as possible; returns the new limit.
  def raise_descriptors
    _, hard = Process.getrlimit(DESCRIPTORS)
    Process.setrlimit(DESCRIPTORS, hard, hard)
    hard
  end

  # Prints how long a loop that does nothing else was kept from running at most.
  #
  # @return [Float] seconds
  def print_max_gap
    max_gap.tap do |gap|
      verdict = "; this machine is not idle" if gap > LONGEST_GAP
      puts format("max gap of a bare loop: %<gap>.2f ms%<verdict>s", gap: gap * 1000, verdict:)
    end
  end

  def max_gap
    ends = (now = Clock.now) + WATCHED
    gap = 0.0
    while now < ends
      before = now
      now = Clock.now
      gap = now - before if now - before > gap
    end
    gap
  end

  def describe
    model = File.read("/proc/cpuinfo")[/^model name\s*: (.*)/, 1] if File.exist?("/proc/cpuinfo")
    { ruby: RUBY_DESCRIPTION, kernel: `uname -sr`.chomp, processors: Etc.nprocessors, processor: model || "unknown",
      tools: %w[taskset wrk strace].to_h { |name| [name, tool(name) ? "installed" : "not installed"] } }
  end
end
