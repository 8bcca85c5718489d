# frozen_string_literal: true

# Runs one file of Async's tests in this process: `ruby suite.rb MODE RESULTS FILE`. MODE is `own`, for Async's own
# scheduler, or Heddle's `none` or `all`. Writes a line for each test to RESULTS: its name, its outcome, and the first
# line of the failure.

mode, results, file = ARGV.slice!(0..)
unless mode == "own"
  require "heddle/async"
  # The library under test is one of Async's gems, which the scheduler knows by name if it was installed.
  Heddle::Async.default!(preempt: mode.to_sym, cooperative: [File.expand_path("lib")])
end
# For the programs that tests start.
ENV.update("RUBYOPT" => "-rheddle/async", "HEDDLE_ASYNC" => "preempt") if mode == "all"

require "sus/config"
require "sus"
require "yaml"

module Torture
  # What becomes of a test.
  module AsyncSuite
    COLOURS = /\e\[[\d;]*m/
    LEFT_OUT = YAML.safe_load_file(File.join(__dir__, "left_out.yml")).values.flatten

    class << self
      # @param test [Class]
      # @return [String] the descriptions of its contexts, and its own
      def name(test)
        # The first ones are the folder and the file.
        test.identity.to_enum.map(&:name).drop(2).join(" ").gsub(/\s+/, " ")
      end

      # @return [Array<String>] the outcome, and the first line of the failure
      def outcome(assertions)
        return [assertions.skipped.empty? ? "." : "S", ""] if assertions.passed?

        text = assertions.each_failure.first&.message&.fetch(:text).to_s.gsub(COLOURS, "")
        ["F", text.lines.map(&:strip).grep_v("").first(2).join(" ").gsub("\t", " ")]
      end
    end
  end
end

File.open(results, "w") do |log|
  log.sync = true
  config = Sus::Config.load(arguments: [file])
  config.before_tests(Sus::Assertions.new(output: Sus::Output::Null.new))
  registry = config.make_registry
  registry.load(file)
  library = Dir["*.gemspec"].first.to_s.delete_suffix(".gemspec")
  seen = Hash.new(0)
  registry.each do |test|
    name = Torture::AsyncSuite.name(test)
    # A shared context may have the same test twice.
    name += " (#{seen[name]})" if (seen[name] += 1) > 1
    next if Torture::AsyncSuite::LEFT_OUT.include?("#{library} #{file} #{name}")

    assertions = Sus::Assertions.new(output: Sus::Output.buffered)
    test.call(assertions)
    log.puts([name, *Torture::AsyncSuite.outcome(assertions)].join("\t"))
  end
end
