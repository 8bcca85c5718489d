# frozen_string_literal: true

# Makes the kernel refuse Heddle's system calls, one call and one error at a time, under a program that uses all of
# them (faults/workload.rb). The program must end by itself, with the right bytes or a clean error in each part.
#
#   ruby -Ilib verification/stress/faults.rb
#   HEDDLE_BACKEND=poll CALLS=epoll_ctl,mmap ruby -Ilib verification/stress/faults.rb
#
# VERBOSE=1 prints the outcome of every run. strace changes the results of the calls. Where strace is missing or may not
# trace, this program says so and fails.

require "open3"
require_relative "faults/run"

# All runs.
class Faults
  # Which of the calls fail: some, or all. A call that Heddle repeats after the error must not fail always.
  SOMETIMES = %w[1 2+3].freeze
  ALWAYS = %w[1 3+5 1+].freeze
  REPEATED = %w[EINTR EAGAIN EBUSY].freeze
  # Ruby itself needs these calls.
  NEEDED = %w[mmap].freeze
  # Heddle waits until the kernel has memory again.
  AWAITED = [%w[io_uring_enter ENOMEM]].freeze
  # Ruby 3.3 itself hangs when the creation of a thread fails more than once.
  ONCE = %w[clone3].freeze

  BOTH = {
    "eventfd2" => %w[EMFILE ENOMEM],
    "preadv2" => %w[EINTR EAGAIN EPERM ENOSYS EOPNOTSUPP],
    "pwritev2" => %w[EINTR EAGAIN EPERM ENOSYS EOPNOTSUPP ENOSPC],
    "pidfd_open" => %w[EPERM ENOSYS EMFILE ENOMEM],
    "clone3" => %w[EAGAIN],
    # Not timerfd_settime, which the kernel does not refuse: the crate timerfd panics there. Heddle catches that panic,
    # but not its message on stderr.
    "timerfd_create" => %w[EMFILE ENOMEM],
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

    @backends.each { |backend| faults(backend).each { |fault| play(Run.new(backend, fault)) } }
    puts "#{@tally.values.sum} runs: #{@tally.map { |kind, count| "#{kind} #{count}" }.join(", ")}"
    @tally.keys.all? { |kind| Run::GOOD.include?(kind) }
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
    calls = CALLS.fetch(backend)
    calls.slice(*@calls || calls.keys).flat_map do |call, errors|
      errors.flat_map do |error|
        occasions(call, error).map { |which| "#{call}:error=#{error}:when=#{which}" }
      end
    end
  end

  # Which of the calls fail, in strace's notation.
  def occasions(call, error)
    return %w[1] if ONCE.include?(call)
    return SOMETIMES if REPEATED.include?(error) || AWAITED.include?([call, error])

    NEEDED.include?(call) ? ALWAYS - ["1+"] : ALWAYS
  end

  def play(run)
    run.play
    @tally[run.kind] += 1
    puts run if @verbose || !Run::GOOD.include?(run.kind)
    $stdout.flush
  end
end

exit(Faults.new(ENV).succeed?) if $PROGRAM_NAME == __FILE__
