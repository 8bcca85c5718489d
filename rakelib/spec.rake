# frozen_string_literal: true

require "fileutils"
require_relative "../bin/support/checks/system_calls"

# Runs RSpec once per backend, concurrently: on two CPUs that takes little more than half of the time.
#
# RSpec::Core::RakeTask can't do this. It waits for RSpec without a limit, and gives no process to send a signal to.
module Specs
  # RSpec's output with all backends but the first.
  LOGS = "tmp/specs"

  BACKENDS = %w[io_uring poll].freeze

  # Seconds. The specs have a watchdog of their own (spec/support/watchdog.rb), but it can't run while native code
  # holds the GVL.
  LIMIT = 40 * 60
  # Seconds from the signal to the kill.
  GRACE = 10

  module_function

  def backends
    return [ENV["HEDDLE_BACKEND"]] if ENV["HEDDLE_BACKEND"]
    return BACKENDS unless (refusal = SystemCalls.io_uring_refusal)

    rule = "!" * 80
    puts rule, "The kernel refuses io_uring (#{refusal}): the specs do NOT run with this backend.", rule
    BACKENDS - ["io_uring"]
  end

  # Runs RSpec, or what the block runs instead, with all backends side by side. Prints the output of the first one as it
  # comes, and that of the others when the first one has finished.
  #
  # @yieldparam backend [String]
  # @yieldparam output [IO]
  # @yieldreturn [Boolean] whether it has passed
  # @return [Array<String>] the backends with which it has not passed
  def failing(backends, &check)
    check ||= method(:passes?)
    FileUtils.mkdir_p(LOGS)
    first, *others = backends
    runs = others.to_h { |backend| [backend, Thread.new { logging(backend) { |log| check.call(backend, log) } }] }
    passed = { first => check.call(first, $stdout) }
    runs.each do |backend, run|
      passed[backend] = run.value
      puts File.read(log(backend))
    end
    backends.reject { |backend| passed[backend] }
  end

  def log(backend) = File.join(LOGS, "#{RUBY_VERSION}-#{backend}.log")

  def logging(backend, &) = File.open(log(backend), "w", &)

  def passes?(backend, output)
    output.puts "RSpec on Ruby #{RUBY_VERSION}, backend #{backend}"
    output.flush
    arguments = %w[SPEC_OPTS SPEC].flat_map { |name| ENV.fetch(name, "").split }
    arguments << "--tty" if $stdout.tty?
    pid = spawn({ "HEDDLE_BACKEND" => backend }, RbConfig.ruby, Gem.bin_path("rspec-core", "rspec"), *arguments,
                %i[out err] => output)
    process = Process.detach(pid)
    stop(process, output) unless process.join(LIMIT)
    status = process.value
    # RSpec itself says nothing if a signal has killed it.
    output.puts "RSpec has not ended by itself: #{status}" if status.signaled?
    status.success?
  end

  # On SIGQUIT the specs report where each thread and fiber is, and exit. If Ruby can't handle the signal, reports its
  # native threads instead.
  def stop(process, output)
    notice = "RSpec is still running after #{LIMIT} s; stopping it (this is no crash)"
    warn notice
    output.puts notice
    output.flush
    Process.kill(:QUIT, process.pid)
    return if process.join(GRACE)

    output.puts "RSpec doesn't handle SIGQUIT. Its native threads:", *native_threads(process.pid),
                native_stacks(process.pid)
    output.flush
    Process.kill(:KILL, process.pid)
  end

  # What Linux reports for each thread: its name, state and system call.
  def native_threads(pid)
    Dir["/proc/#{pid}/task/*"].map do |task|
      status = File.read("#{task}/status").scan(/^(?:Name|State|voluntary_ctxt_switches):\t(.*)/).join(", ")
      "  #{File.basename(task)}: #{status}, system call #{read(task, "syscall")}, in #{read(task, "wchan")}"
    end
  end

  def read(task, file)
    File.read("#{task}/#{file}").chomp
  rescue SystemCallError => e
    "(#{e.class})"
  end

  # The stacks, where gdb is installed.
  def native_stacks(pid)
    IO.popen(["gdb", "--batch", "--pid", pid.to_s, "--eval-command", "thread apply all backtrace"], err: %i[child out],
             &:read)
  rescue Errno::ENOENT
    "gdb is not installed, which would show their stacks."
  end
end

desc "Run the specs on HEDDLE_BACKEND, or on all backends concurrently (SPEC and SPEC_OPTS as usual)"
task :spec do
  failed = Specs.failing(Specs.backends)
  abort "Specs failed on Ruby #{RUBY_VERSION} with #{failed.join(" and ")}" if failed.any?
end
