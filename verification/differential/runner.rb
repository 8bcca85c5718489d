# frozen_string_literal: true

# Runs programs one after the other, each in a child process, as one contestant, and prints the outcomes as JSON.
#
#   ruby -Ilib verification/differential/runner.rb io_uring-preempted verification/differential/programs/closing/read.rb
#
# The contestants: `plain` (threads, Heddle not loaded), `loaded` (threads, after a scheduler), `io_uring`, `poll`, and
# each of these two with `-preempted`.

require "json"
require_relative "support/program"

# One contestant's run.
class Runner
  # Seconds for a program, which takes a tenth of a second beside nothing else.
  LIMIT = 30
  STDIN_TEXT = "first line\nsecond line\nthe rest"

  def initialize(contestant)
    backend, preempted = contestant.split("-")
    require "heddle" unless backend == "plain"
    # What the first scheduler of a process changes stays.
    Heddle.run { nil } if backend == "loaded"
    return if %w[plain loaded].include?(backend)

    Program.options = { backend: backend.to_sym }
    Program.options.merge!(preempt: :all, tick: 0.0001) if preempted
  end

  # Returns the outcome of the program: what it printed and how it ended.
  def run(path)
    Dir.mktmpdir("heddle-differential") do |directory|
      input, feed = IO.pipe
      feed.write(STDIN_TEXT)
      feed.close
      pid = fork { play(File.expand_path(path), directory, input) }
      input.close
      status = wait(pid)
      { path:, status:, output: text("#{directory}.out"), errors: text("#{directory}.err") }
    ensure
      FileUtils.rm_f(["#{directory}.out", "#{directory}.err"])
    end
  end

  private

  def text(path) = File.read(path, encoding: "UTF-8").scrub

  def play(path, directory, input)
    Process.setpgid(0, 0)
    # A shell lets its background jobs ignore SIGINT.
    trap("INT", "DEFAULT")
    $stdin.reopen(input)
    $stdout.reopen("#{directory}.out", "w")
    $stderr.reopen("#{directory}.err", "w")
    [$stdout, $stderr].each { |io| io.sync = true }
    input.close
    Dir.chdir(directory)
    Program.run(path)
  end

  # Returns how the program ended, and ends all processes that it started.
  def wait(pid)
    process = Process.detach(pid)
    return end_of(process.value) if process.join(LIMIT)

    "not over after #{LIMIT} s"
  ensure
    begin
      Process.kill(:KILL, -pid)
    rescue Errno::ESRCH
      # Nothing is left of it.
    end
    process.join
  end

  def end_of(status)
    status.signaled? ? "SIG#{Signal.signame(status.termsig)}" : "exit #{status.exitstatus}"
  end
end

if $PROGRAM_NAME == __FILE__
  contestant, *paths = ARGV
  runner = Runner.new(contestant)
  paths.each do |path|
    puts JSON.generate(runner.run(path))
    $stdout.flush
  end
end
