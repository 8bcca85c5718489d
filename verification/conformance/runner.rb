# frozen_string_literal: true

require "etc"
require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"
require_relative "../torture/child_process"
require_relative "../torture/known_differences"

# Runs Ruby's own test/fiber with Heddle in the place of the suite's reference scheduler.
module RubyTestFiber
  HERE = __dir__

  # A copy of the suite in a temporary directory, whose scheduler.rb is Heddle's. The tests load the one beside them,
  # also in the processes that they start.
  class Stage
    attr_reader :path

    def initialize(tree, reference:)
      suite = File.join(tree, "test/fiber")
      raise ArgumentError, "#{tree} is no Ruby source tree: test/fiber is missing" unless File.directory?(suite)

      # The real path, since the tests compare their own with what Ruby has loaded.
      @path = File.realpath(Dir.mktmpdir("heddle-conformance"))
      FileUtils.cp(Dir[File.join(suite, "*.rb")], @path)
      return if reference

      File.write(File.join(@path, "scheduler.rb"), "require #{File.join(HERE, "stand_in").dump}\n")
    end

    def remove
      FileUtils.rm_rf(@path)
    end
  end

  Test = Data.define(:file, :name)

  # How one test ended: :passed, :failed, or :skipped by the test itself.
  Result = Data.define(:test, :outcome, :output, :seconds)

  # Each test runs in a process of its own: one that hangs or crashes is a failure and touches no other.
  class Processes
    CHILD = File.join(HERE, "child.rb")

    def initialize(tree, stage, limit)
      @tree = tree
      @stage = stage
      @limit = limit
    end

    def list
      output, status = Open3.capture2e(Torture::ChildProcess.environment, *command("list"), unsetenv_others: true)
      raise "The suite can't be loaded:\n#{output}" unless status.success?

      output.scan(/^(\S+\.rb) (\S+#\S+)$/).map { |file, name| Test.new(file, name) }
    end

    def run(test)
      started = now
      process = Torture::ChildProcess.new(command("run", test.file, test.name),
                                          log: File.join(@stage.path, "#{test.name}.log"))
      status = process.wait(@limit)
      output = process.output
      output = "Still running after #{@limit} s\n#{output}" unless status
      Result.new(test, outcome(status, output), output, now - started)
    end

    private

    def outcome(status, output)
      return :failed unless status&.success?

      # A test that Test::Unit didn't find has not passed.
      case output[/^(\d+ tests.*)$/, 1]
      when /\A1 tests.* 0 skips/ then :passed
      when /\A1 tests/ then :skipped
      else :failed
      end
    end

    def command(name, *arguments)
      [RbConfig.ruby, "-I", File.join(@tree, "tool/lib"), CHILD, name, @tree, @stage.path, *arguments]
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end

  # What is printed at the end.
  class Report
    SLOWEST = 3

    def initialize(results, left_out)
      @results = results.sort_by { |result| result.test.name }
      @left_out = left_out
    end

    def success?
      @results.any? && of(:failed).empty?
    end

    def lines
      [
        *of(:failed).flat_map { |result| ["", "FAILED #{result.test.name}", result.output] },
        *of(:skipped).map { |result| "Skipped by itself: #{result.test.name}" },
        *@left_out.map { |test, reason| "Left out: #{test.name} (#{reason})" },
        *slowest,
        "#{%i[passed failed skipped].map { |outcome| "#{of(outcome).size} #{outcome}" }.join(", ")}, " \
        "#{@left_out.size} left out",
        *of(:failed).map { |result| "  FAILED #{result.test.name}" }
      ]
    end

    private

    def of(outcome)
      @results.select { |result| result.outcome == outcome }
    end

    def slowest
      @results.max_by(SLOWEST, &:seconds).map { |result| "#{result.seconds.round(1)} s for #{result.test.name}" }
    end
  end

  # Runs all of it and prints the outcome.
  class Runner
    # Seconds for one test. The slowest take 5.
    LIMIT = 30

    def initialize(tree, names: [], limit: LIMIT, reference: false)
      @tree = File.expand_path(tree)
      @names = names
      @limit = limit
      @reference = reference
    end

    # Whether everything passed.
    def run
      stage = Stage.new(@tree, reference: @reference)
      processes = Processes.new(@tree, stage, @limit)
      tests, left_out = select(processes.list)
      introduce(tests)
      report = Report.new(run_all(processes, tests), left_out)
      puts report.lines
      report.success?
    ensure
      stage&.remove
    end

    private

    def select(tests)
      left_out = Torture::KnownDifferences.new(File.join(HERE, "left_out.yml"), rubies: RUBY_VERSION[/\d+\.\d+/])
      unknown = left_out.tests - tests.map(&:name)
      raise "left_out.yml names unknown tests: #{unknown.join(", ")}" if unknown.any?

      wanted = tests.select { |test| wanted?(test) }
      return [wanted, {}] if @reference

      run, left = wanted.partition { |test| left_out.reason(test.name).nil? }
      [run, left.to_h { |test| [test, left_out.reason(test.name)] }]
    end

    def wanted?(test)
      @names.empty? || @names.any? { |name| "#{test.file} #{test.name}".include?(name) }
    end

    def introduce(tests)
      scheduler = if @reference
                    "the suite's own scheduler"
                  else
                    "Heddle (#{["backend #{ENV.fetch("HEDDLE_BACKEND", "auto")}", *interface].join(", ")})"
                  end
      puts "#{tests.size} tests of #{@tree}/test/fiber on Ruby #{RUBY_VERSION} with #{scheduler}"
    end

    def interface = ENV.key?("INTERFACE") ? "called by version #{ENV["INTERFACE"]} of the interface" : nil

    def run_all(processes, tests)
      waiting = Queue.new(tests).close
      results = Queue.new
      Array.new(Etc.nprocessors) do
        Thread.new do
          while (test = waiting.pop)
            results << processes.run(test).tap { |result| print(sign(result)) }
          end
        end
      end.each(&:join)
      puts
      Array.new(results.size) { results.pop }
    end

    def sign(result)
      { passed: ".", skipped: "S", failed: "F" }.fetch(result.outcome)
    end
  end
end
