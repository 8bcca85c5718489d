# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "yaml"

module Torture
  # Runs the tests of one of Async's gems, each file once on Async's own scheduler, and on Heddle's with and without
  # preemption, on both backends. Prints the tests that pass on Async's own and not on Heddle's.
  class AsyncTests
    FOLDER = __dir__
    LIB = File.expand_path("../../lib", FOLDER)
    LOGS = File.expand_path("../../tmp/async", FOLDER)
    # Each way to run a file: the mode that `suite.rb` takes, and Heddle's backend.
    OWN = %w[own poll].freeze
    HEDDLE = %w[none all].product(%w[io_uring poll]).freeze
    # Tests that differ by design, by the reason: gem, file, and the test's name.
    KNOWN = (YAML.safe_load_file(File.join(FOLDER, "known_differences.yml")) || {}).values.flatten.freeze
    # The name of an object without its address, which differs between two runs.
    VARYING = /0x\h+/
    # Seconds for one file.
    LIMIT = 120

    # @param tree [String] a source tree
    # @param files [Array<String>, nil] which of its files; nil is all in `test`
    def initialize(tree, files: nil)
      @tree = File.expand_path(tree)
      @gem = Dir.glob("*.gemspec", base: @tree).first.to_s.delete_suffix(".gemspec")
      present = Dir.glob("test/**/*.rb", base: @tree).sort
      @files = files ? files & present : present
      abort "#{tree} has no such tests" if @files.empty?
    end

    # @return [Boolean] whether each test that passes on Async's own scheduler passes on Heddle's, except for those
    #   that are known to differ, and whether these do
    def pass?
      passed, differing = @files.map { |file| compare(file) }.transpose.map(&:flatten)
      puts "#{@gem}: no test passes on Async's scheduler, see #{LOGS}" if passed.empty?
      equal = (KNOWN & passed) - differing
      equal.each { |test| puts "  #{test}: is a known difference, and passes" }
      passed.any? && (differing - KNOWN).empty? && equal.empty?
    end

    private

    # @return [Array<Array<String>>] the tests of the file that pass on Async's own scheduler, and those of them that
    #   do not pass on Heddle's
    def compare(file)
      own = results(file, *OWN)
      passed = own.keys.select { |test| passed?(own, test) }
      puts "#{@gem} #{file}: #{own.size} tests, #{passed.size} pass on Async's scheduler"
      differing = HEDDLE.flat_map { |ways| differing_with(ways, file, passed) }.uniq
      [passed, differing].map { |tests| tests.map { |test| key(file, test) } }
    end

    def differing_with(ways, file, tests)
      results = results(file, *ways)
      tests.reject { |test| passed?(results, test) }.each { |test| report(file, test, ways, results[test]) }
    end

    def passed?(results, test) = results[test]&.first == "."

    def key(file, test) = [@gem, file, test].join(" ")

    def report(file, test, ways, result)
      known = " (known)" if KNOWN.include?(key(file, test))
      result = result ? result.reject(&:empty?).join(" ") : "missing (#{@status})"
      puts "  #{test}#{known}: #{result} with #{ways.join(", ")}"
    end

    # @return [Hash{String => Array<String>}] each test's outcome, and the first lines of its failure
    def results(file, mode, backend)
      FileUtils.mkdir_p(LOGS)
      name = [@gem, file.tr("/", "_"), mode, backend].join("-")
      results, log = %w[results log].map { |kind| File.join(LOGS, "#{name}.#{kind}") }
      File.write(results, "")
      command = ["timeout", "-s", "KILL", LIMIT.to_s, RbConfig.ruby, "-W0", "-Ilib", "-Ifixtures",
                 File.join(FOLDER, "suite.rb"), mode, results, file]
      run(environment(backend), *command, chdir: @tree, unsetenv_others: true, in: File::NULL, out: log,
                                          err: %i[child out])
      lines = File.readlines(results, chomp: true).map { |line| line.split("\t", -1) }
      lines.to_h { |test, *result| [test.gsub(VARYING, "0x"), result] }
    end

    # Servers that a test leaves behind would keep their ports. `timeout` makes a process group of its own. How it ends
    # tells a test that has crashed or never run from one that takes too long.
    def run(...)
      _, @status = Process.wait2(group = spawn(...))
      Process.kill(:KILL, -group)
    rescue Errno::ESRCH
      # Nothing is left.
    end

    def environment(backend)
      original = Bundler.unbundled_env
      paths = [File.join(FOLDER, "shims"), LIB, original["RUBYLIB"]].compact.join(File::PATH_SEPARATOR)
      # Servers of async-service load the gems of a Gemfile, if there is one.
      original.merge("RUBYLIB" => paths, "HEDDLE_BACKEND" => backend, "BUNDLE_GEMFILE" => File.join(FOLDER, "none"))
    end
  end
end
