# frozen_string_literal: true

require "etc"
require "shellwords"

# What this machine has, and what it allows: processors to pin to, descriptors, the tools that a benchmark would like to
# use. Whatever is missing is told, and never worked round in silence.
module Machine
  SERVER = 0
  CLIENT = 1
  DESCRIPTORS = Process::RLIMIT_NOFILE

  module_function

  def tool(name)
    ENV["PATH"].split(File::PATH_SEPARATOR).map { |folder| "#{folder}/#{name}" }.find { |file| File.executable?(file) }
  end

  # The command on one processor, if there is a way to say so and there is that processor.
  def on(processor, command)
    return command unless processor && reach?(processor)

    [*pinned(processor), *command]
  end

  # Asked of the kernel, since to a process that is pinned itself `Etc.nprocessors` tells of its own processor alone.
  def reach?(processor)
    tool("taskset") && system(*pinned(processor), "true", out: File::NULL, err: File::NULL)
  end

  def pinned(processor) = ["taskset", "-c", processor.to_s]

  # Raises the limit of descriptors as far as it goes; returns what it is then.
  def raise_descriptors
    _, hard = Process.getrlimit(DESCRIPTORS)
    Process.setrlimit(DESCRIPTORS, hard, hard)
    hard
  end

  def describe
    model = File.read("/proc/cpuinfo")[/^model name\s*: (.*)/, 1] if File.exist?("/proc/cpuinfo")
    { ruby: RUBY_DESCRIPTION, kernel: `uname -sr`.chomp, processors: Etc.nprocessors, processor: model || "unknown",
      tools: %w[taskset wrk strace].to_h { |name| [name, tool(name) ? "there" : "not installed"] } }
  end
end
