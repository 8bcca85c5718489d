# frozen_string_literal: true

# Has the kernel refuse what Heddle asks of it, one call and one error at a time, under a program that does a little of
# everything (stress/faults/workload.rb). That must end by itself, with the right bytes or a clean error in each part.
#
#   ruby -Ilib stress/faults.rb
#   HEDDLE_BACKEND=poll CALLS=epoll_ctl,mmap ruby -Ilib stress/faults.rb
#
# VERBOSE=1 prints what became of every run. strace falsifies the answers: where it is missing or may not trace, this says so and fails.

require "open3"
require "rbconfig"
require "timeout"

# One call, one error, and which of the calls get it.
Fault = Struct.new(:call, :error, :which) do
  def to_s = "#{call}:error=#{error}:when=#{which}"
end

# All runs.
class Faults
  # Seconds for one run, which takes half a second by itself.
  LIMIT = 10
  LAST_WORDS = 2
  WORKLOAD = File.expand_path("faults/workload.rb", __dir__)

  # Now and then, and always. What may be tried again is, for as long as it takes, so that it must not be always.
  SOMETIMES = %w[1 2+3].freeze
  ALWAYS = %w[1 3+5 1+].freeze
  REPEATED = %w[EINTR EAGAIN EBUSY].freeze
  # Without any Ruby itself does nothing.
  NEEDED = %w[mmap].freeze
  # Ruby 3.3 itself hangs when it was refused a thread more than once.
  ONCE = %w[clone3].freeze

  BOTH = {
    "eventfd2" => %w[EMFILE ENOMEM],
    "preadv2" => %w[EINTR EAGAIN EPERM ENOSYS EOPNOTSUPP],
    "pwritev2" => %w[EINTR EAGAIN EPERM ENOSYS EOPNOTSUPP ENOSPC],
    "pidfd_open" => %w[EPERM ENOSYS EMFILE ENOMEM],
    "clone3" => %w[EAGAIN],
    "timerfd_create" => %w[EMFILE ENOMEM],
    "timerfd_settime" => %w[EINVAL],
    "timer_create" => %w[EAGAIN ENOMEM],
    "mmap" => %w[ENOMEM],
    "recvfrom" => %w[EINTR EAGAIN ENOMEM],
    "sendto" => %w[EINTR EAGAIN ENOMEM],
    "read" => %w[EINTR],
    "write" => %w[EINTR]
  }.freeze

  CALLS = {
    "io_uring" => {
      "io_uring_setup" => %w[EPERM ENOMEM ENOSYS EMFILE],
      "io_uring_register" => %w[EPERM EINVAL ENOMEM],
      "io_uring_enter" => %w[EINTR EAGAIN EBUSY ENOMEM],
      **BOTH
    },
    "poll" => {
      "epoll_create1" => %w[EMFILE ENOMEM],
      "epoll_ctl" => %w[ENOMEM ENOSPC EPERM],
      "epoll_wait" => %w[EINTR],
      "epoll_pwait2" => %w[EINTR EPERM ENOSYS],
      **BOTH
    }
  }.freeze

  def initialize(environment)
    @backends = environment["HEDDLE_BACKEND"]&.split || CALLS.keys
    @calls = environment["CALLS"]&.split(",")
    @verbose = environment.key?("VERBOSE")
    @tally = Hash.new(0)
  end

  def succeed?
    return false unless traces?

    wrong = @backends.flat_map { |backend| faults(backend).filter_map { |fault| complaint(backend, fault) } }
    puts "#{@tally.values.sum} runs: #{@tally.map { |kind, count| "#{kind} #{count}" }.join(", ")}"
    warn(*wrong)
    wrong.empty?
  end

  private

  def traces?
    output, status = Open3.capture2e("strace", "-o", File::NULL, "true")
    warn "strace doesn't trace: #{output}" unless status.success?
    status.success?
  rescue Errno::ENOENT
    warn "strace is not installed"
    false
  end

  def faults(backend)
    CALLS.fetch(backend).slice(*@calls || CALLS.fetch(backend).keys).flat_map do |call, errors|
      errors.flat_map do |error|
        occasions(call, error).map { |which| Fault.new(call, error, which) }
      end
    end
  end

  def occasions(call, error)
    return %w[1] if ONCE.include?(call)

    return SOMETIMES if REPEATED.include?(error)

    NEEDED.include?(call) ? ALWAYS - ["1+"] : ALWAYS
  end

  # What is to be complained of, if anything.
  def complaint(backend, fault)
    output, errors, status = play(backend, fault)
    kind = judge(output, errors, status)
    @tally[kind] += 1
    puts "#{backend} #{fault}: #{kind}", output.lines.grep_v(/ right$/) if @verbose || !%i[right clean].include?(kind)
    $stdout.flush
    return if %i[right clean].include?(kind)

    "#{backend} #{fault}: #{kind}, #{status.inspect}\n#{output}#{errors}".gsub("\n", "\n    ")
  end

  def judge(output, errors, status)
    return :hung if status.nil?
    return :crashed if status.signaled? || errors.include?("[BUG]") || errors.include?("panicked")
    return :wrong if output.include?("WRONG")
    return :unfinished if output.include?("not over") && output.include?("program right")
    return :clean unless output.lines.all?(/ right$/)
    return :right if output.include?("program right")

    errors.match?(/failed to allocate|NoMemoryError|can't create Thread/) ? :clean : :unfinished
  end

  # Its output, its errors and its status, or none if it had to be killed.
  def play(backend, fault)
    Open3.popen3({ "HEDDLE_BACKEND" => backend }, RbConfig.ruby, "-Ilib", WORKLOAD, pgroup: true) do |input, out, err, process|
      raise "the workload doesn't begin" unless out.gets == "ready\n"

      readers = [out, err].map { |io| Thread.new { io.read } }
      injecting(process.pid, fault) { input.puts("go") }
      ended = process.join(LIMIT)
      stop(process) unless ended
      [*readers.map(&:value), ended && process.value]
    ensure
      kill(process.pid)
    end
  end

  # On SIGQUIT it tells where it is.
  def stop(process)
    Process.kill(:QUIT, process.pid)
    process.join(LAST_WORDS) || kill(process.pid)
  end

  def kill(pid)
    Process.kill(:KILL, -pid)
  rescue Errno::ESRCH
    # It has ended by itself.
  end

  # strace goes when the traced process does. It says that it is there, and then nothing more.
  def injecting(pid, fault)
    errors, own = IO.pipe
    tracer = spawn("strace", "-f", "-p", pid.to_s, "-o", File::NULL, "-e", "inject=#{fault}", err: own)
    Process.detach(tracer)
    own.close
    attached = errors.gets
    raise "strace says: #{attached}#{errors.read}" unless attached&.include?("attached")

    Thread.new { errors.read }
    yield
  end
end

exit(Faults.new(ENV).succeed?) if $PROGRAM_NAME == __FILE__
