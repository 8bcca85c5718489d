# frozen_string_literal: true

# Runs RSpec once per backend.
module Specs
  BACKENDS = %w[io_uring poll].freeze

  # The specs watch over themselves (spec/support/watchdog.rb). This is for the case that they can't: native code that
  # never lets go of the GVL.
  LIMIT = 10 * 60
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

  def pass?(backend)
    puts "RSpec on Ruby #{RUBY_VERSION}, backend #{backend}"
    $stdout.flush
    arguments = %w[SPEC_OPTS SPEC].flat_map { |name| ENV.fetch(name, "").split }
    pid = spawn({ "HEDDLE_BACKEND" => backend }, RbConfig.ruby, Gem.bin_path("rspec-core", "rspec"), *arguments)
    process = Process.detach(pid)
    stop(process) unless process.join(LIMIT)
    process.value.success?
  end

  # On SIGSEGV Ruby prints where it is, in Ruby and in C.
  def stop(process)
    warn "RSpec is still running after #{LIMIT} s and is stopped"
    Process.kill(:SEGV, process.pid)
    Process.kill(:KILL, process.pid) unless process.join(LAST_WORDS)
  end
end

desc "Run the specs on HEDDLE_BACKEND, or else on each backend in turn (SPEC and SPEC_OPTS as usual)"
task :spec do
  failed = Specs.backends.reject { |backend| Specs.pass?(backend) }
  abort "Specs failed on Ruby #{RUBY_VERSION} with #{failed.join(" and ")}" if failed.any?
end
