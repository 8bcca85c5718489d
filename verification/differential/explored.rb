# frozen_string_literal: true

# Runs the differential programs under explored schedules. The outcome of each schedule must be that of plain threads.
#
#   ruby -Ilib verification/differential/explored.rb [timeouts/nested.rb …]        all by default
#
# SEEDS=200             schedules of each program, half of them with each backend
# SEED=1                the seed of the first one
# SECONDS=100           for all programs: one that has used up its share of this is left with fewer schedules
# HEDDLE_BACKEND=poll   only this one
#
# A failure is told as Heddle::Testing does, with the command that replays it: HEDDLE_SEED=7 HEDDLE_BACKEND=poll ruby …
#
# Programs take part that belong to one thread, and can run again in the same process.

require "etc"
require "json"
require "open3"
require_relative "support/explored_program"

# All programs.
class Explored
  # What programs of these folders do ends or forks the process, or belongs to other threads.
  FOLDERS = Dir.children(ExploredProgram::PROGRAMS).sort - %w[exec forking processes ractors roots signals]
  # Why other programs take no part.
  UNFIT = {
    "it uses threads" => /\bThread\.(new|start)|\belsewhere\b/,
    "it starts processes" => /\b(fork|spawn|popen|system)\b|`/
  }.freeze
  LEFT_OUT = {
    "files/require.rb" => "it looks at what the process has loaded",
    "pipes/kernel_gets.rb" => "it reads the process's standard input",
    "pipes/stdin.rb" => "it reads the process's standard input",
    "pipes/stdin_in_task.rb" => "it reads the process's standard input",
    "pipes/stdout_closed.rb" => "it closes the process's standard output"
  }.freeze

  def initialize(names)
    @names = names.empty? ? fit(FOLDERS.flat_map { |folder| all_of(folder) }) : names
    @backends = ENV["HEDDLE_BACKEND"] ? [ENV["HEDDLE_BACKEND"]] : %w[poll io_uring]
    @count = number("SEEDS", 200)
    @first = number("SEED", 1)
    @seconds = number("SECONDS", 100)
  end

  # @return [Boolean] whether every outcome was that of plain threads
  def call
    expected = on_threads
    parts = expected.keys.product(@backends).map { |name, backend| ExploredProgram.new(name, backend, expected[name]) }
    share = @seconds * Etc.nprocessors / Float(parts.size)
    each_beside_others(parts) { |part| part.explore(seeds, share).then { report(part) } }
    sum_up(expected.size, parts)
    parts.none?(&:failure)
  end

  private

  def number(variable, default) = Integer(ENV.fetch(variable, default.to_s), 10)

  def all_of(folder)
    Dir.children(File.join(ExploredProgram::PROGRAMS, folder)).sort.map { |file| File.join(folder, file) }
  end

  def fit(names)
    names.reject do |name|
      source = File.read(File.join(ExploredProgram::PROGRAMS, name), encoding: "UTF-8").gsub(/^#.*/, "")
      reason = LEFT_OUT[name] || UNFIT.find { |_, pattern| pattern.match?(source) }&.first
      puts "left out: #{name}: #{reason}" if reason
      reason
    end
  end

  # @return [Hash{String => String}] what the programs say on plain threads
  def on_threads
    expected = {}
    each_beside_others(@names.each_slice(10).to_a) do |names|
      paths = names.map { |name| File.join(ExploredProgram::PROGRAMS, name) }
      lines, = Open3.capture2(RbConfig.ruby, File.join(__dir__, "runner.rb"), "plain", *paths)
      names.zip(lines.lines) { |name, line| expected[name] = output_of(JSON.parse(line), name) }
    end
    expected.compact.sort.to_h
  end

  # Since Ruby 4.0 some libraries are gems, which may be missing.
  def output_of(outcome, name)
    return puts("left out: #{name}: #{outcome["errors"].lines.first}") if outcome["errors"].include?("(LoadError)")
    return outcome["output"] if outcome["status"] == "exit 0"

    puts "left out: #{name}: it ends the process: #{outcome["status"]}"
  end

  def each_beside_others(items)
    waiting = Thread::Queue.new(items).close
    workers = Array.new(Etc.nprocessors) do
      Thread.new do
        while (item = waiting.pop)
          yield item
        end
      end
    end
    workers.each(&:join)
  end

  def seeds
    return [Integer(ENV.fetch("HEDDLE_SEED"), 10)] if ENV["HEDDLE_SEED"]

    @first...(@first + (@count / @backends.size))
  end

  def sum_up(programs, parts)
    runs = parts.map(&:runs)
    puts "#{programs} programs, #{runs.sum} schedules, #{runs.minmax.join(" to ")} of a program with a backend, " \
         "#{parts.count(&:failure)} failures", "SEED=#{@first}"
  end

  def report(part) = part.failure && puts("", part.failure, "")
end

exit(Explored.new(ARGV).call) if $PROGRAM_NAME == __FILE__
