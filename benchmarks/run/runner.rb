# frozen_string_literal: true

require "json"
require "rbconfig"
require "tempfile"
require_relative "machine"

# Runs one measurement in a fresh Ruby (child.rb) on the first processor. After LIMIT it kills the child and all that
# the child has started. Returns the child's Hash, in which `failed` says what went wrong.
#
# Removes Bundler's variables from the environment: the contestants are the system's gems, not this project's. RubyGems
# loads Bundler again as long as BUNDLER_SETUP is set. Also removes what only a contestant may set.
class Runner
  CHILD = File.expand_path("child.rb", __dir__)
  LIMIT = 90
  ENVIRONMENT = %w[
    RUBYOPT RUBYLIB BUNDLE_GEMFILE BUNDLER_SETUP HEDDLE_BACKEND RUBY_THREAD_TIMESLICE
  ].to_h { |name| [name, nil] }.freeze
  LONGEST_MESSAGE = 400

  # The figure is the difference of two traced runs of different lengths, since both include the start and the end.
  # BENCH_SCALE does not change their lengths.
  TRACED_SECONDS = [1, 3].map { |seconds| seconds / Float(ENV.fetch("BENCH_SCALE", "1")) }.freeze

  # @param library [String, nil] the folder that Heddle is loaded from, if it is another tree's
  def initialize(library: nil)
    @library = library
  end

  def measure(contestant, workload: nil, parameters: {}, traced: false)
    return calls_per_operation(contestant, workload, parameters) if traced

    run(contestant, ruby(contestant, workload, parameters))
  end

  private

  def ruby(contestant, workload, parameters)
    request = { contestant: contestant.name, workload:, parameters:, library: @library }
    [RbConfig.ruby, CHILD, JSON.generate(request.compact)]
  end

  def run(contestant, command)
    Tempfile.create("heddle-bench-errors") do |errors|
      reader, writer = IO.pipe
      environment = ENVIRONMENT.merge(contestant.environment)
      pid = spawn(environment, *Machine.on(Machine::SERVER, command), out: writer, err: errors, pgroup: true)
      writer.close
      output = Thread.new { reader.read }
      ended = Process.detach(pid).join(LIMIT)
      Process.kill(:KILL, -pid) unless ended
      ended ? parse(output.value, errors) : { failed: "still running after #{LIMIT} s" }
    ensure
      reader&.close
    end
  end

  def parse(output, errors)
    JSON.parse(output.lines.last.to_s, symbolize_names: true)
  rescue JSON::ParserError
    errors.rewind
    { failed: errors.read.strip[0, LONGEST_MESSAGE] }
  end

  def calls_per_operation(contestant, workload, parameters)
    return { left_out: "strace is not installed" } unless Machine.tool("strace")

    runs = TRACED_SECONDS.map { |seconds| traced(contestant, workload, parameters.merge(seconds:)) }
    broken = runs.find { |result| result[:calls].nil? }
    return broken if broken

    short, long = runs
    operations = long[:operations] - short[:operations]
    long.merge(calls: (long[:calls] - short[:calls]) / operations.to_f, operations:, expected: operations)
  end

  # strace detaches from the clients as soon as they execute another program (`-b execve`).
  def traced(contestant, workload, parameters)
    Tempfile.create("heddle-bench-strace") do |summary|
      tracing = ["strace", "-c", "-f", "-b", "execve", "-o", summary.path]
      result = run(contestant, [*tracing, *ruby(contestant, workload, parameters)])
      calls = File.read(summary.path)[/^100\.00\s+\S+\s+\d+\s+(\d+).* total$/, 1]
      next result unless result[:operations]
      next { left_out: "strace can't trace here" } unless calls

      result.merge(calls: Integer(calls))
    end
  end
end
