# frozen_string_literal: true

# Has the kernel refuse what Heddle asks of it, one call and one error at a time, under a program that does a little of
# everything (stress/faults/workload.rb). That must end by itself, with the right bytes or a clean error in each part.
#
#   ruby -Ilib stress/faults.rb
#   HEDDLE_BACKEND=poll CALLS=epoll_ctl,mmap ruby -Ilib stress/faults.rb
#
# VERBOSE=1 prints what became of every run. strace falsifies the answers: where it is missing or may not trace, this
# says so and fails.

require "open3"
require_relative "faults/run"

# All runs.
class Faults
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

  # Which of the calls are refused, as strace takes it.
  def occasions(call, error)
    return %w[1] if ONCE.include?(call)
    return SOMETIMES if REPEATED.include?(error)

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
