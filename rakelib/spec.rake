# frozen_string_literal: true

require "fileutils"

# Runs RSpec once per backend, side by side: two CPUs are done in little more than half of the time.
module Specs
  # What RSpec printed, for the runs that failed: bin/test repeats it at its end, where it isn't scrolled away.
  LOGS = "tmp/specs"

  BACKENDS = %w[io_uring poll].freeze

  # The specs watch over themselves (spec/support/watchdog.rb). This is for the case that they can't: native code that
  # never lets go of the GVL.
  LIMIT = 20 * 60
  LAST_WORDS = 10

  IO_URING_SETUP = 425
  NO_PARAMETERS = 0

  module_function

  # Asks the kernel itself, not Heddle: a bug of Heddle's must not pass for a kernel that refuses. A kernel that doesn't
  # refuse complains about the missing parameters instead.
  def io_uring_refusal
    return "there is none on #{RUBY_PLATFORM}" unless RUBY_PLATFORM.include?("linux")

    without_warnings { syscall(IO_URING_SETUP, 1, NO_PARAMETERS) }
  rescue Errno::EFAULT
    nil
  rescue SystemCallError => e
    e.message
  end

  def without_warnings
    verbose = $VERBOSE
    $VERBOSE = nil
    yield
  ensure
    $VERBOSE = verbose
  end

  def backends
    return [ENV["HEDDLE_BACKEND"]] if ENV["HEDDLE_BACKEND"]
    return BACKENDS unless (refusal = io_uring_refusal)

    rule = "!" * 80
    puts rule, "The kernel refuses io_uring (#{refusal}): its specs are NOT run.", rule
    BACKENDS - ["io_uring"]
  end

  # What the first one prints is seen as it comes, what the others print when it is done.
  def failing(backends)
    FileUtils.mkdir_p(LOGS)
    first, *others = backends
    runs = others.to_h { |backend| [backend, Thread.new { logging(backend) { |log| passes?(backend, log) } }] }
    passed = { first => teeing(log(first)) { |output| passes?(first, output) } }
    runs.each do |backend, run|
      passed[backend] = run.value
      puts File.read(log(backend))
    end
    passed.each { |backend, success| FileUtils.rm(log(backend)) if success }
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
    process.value.success?
  end

  # A process of its own, as what a crash prints is to be kept, too.
  def teeing(log)
    output, input = IO.pipe
    tee = Process.detach(spawn("tee", log, in: output))
    output.close
    yield input
  ensure
    input.close
    # Not for ever: a process that an example left behind has the pipe, too.
    tee.join(LAST_WORDS)
  end

  # On SIGQUIT the specs tell where each thread and fiber is, and end. If Ruby doesn't come to that, its native threads
  # are all that can be told.
  def stop(process, output)
    notice = "RSpec is still running after #{LIMIT} s and is stopped: this is no crash"
    warn notice
    output.puts notice
    output.flush
    Process.kill(:QUIT, process.pid)
    return if process.join(LAST_WORDS)

    output.puts "It doesn't answer. Its native threads:", *native_threads(process.pid), native_stacks(process.pid)
    output.flush
    Process.kill(:KILL, process.pid)
  end

  # What Linux tells of each: its name, state and system call.
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

  # A debugger tells more, where there is one.
  def native_stacks(pid)
    IO.popen(["gdb", "--batch", "--pid", pid.to_s, "--eval-command", "thread apply all backtrace"], err: %i[child out],
             &:read)
  rescue Errno::ENOENT
    "There is no gdb, which would show their stacks."
  end
end

desc "Run the specs on HEDDLE_BACKEND, or else on all of them side by side (SPEC and SPEC_OPTS as usual)"
task :spec do
  failed = Specs.failing(Specs.backends)
  abort "Specs failed on Ruby #{RUBY_VERSION} with #{failed.join(" and ")}" if failed.any?
end
