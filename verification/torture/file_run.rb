# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "tmpdir"
require_relative "child_process"
require_relative "log"

module Torture
  # Which tests of a file are to be run, and how.
  #
  # tree: the Ruby source tree. file: the test file, relative to it. around: what each test is run in: :plain (nothing),
  # :fiber (a plain Fiber, which shows the effects of all fibers) or :heddle. options: for Heddle.run. companions:
  # whether other fibers run beside each test. only, except: names of tests; only is nil for all.
  Plan = Data.define(:tree, :file, :around, :options, :companions, :only, :except) do
    def initialize(around: :plain, options: {}, companions: false, only: nil, except: [], **) = super
  end

  # Runs the tests of one file in child processes. When a test hangs or crashes, the rest of the file is run in another
  # process.
  class FileRun
    CHILD = File.join(__dir__, "child.rb")
    # The name of a hang or crash after all tests have ended.
    OUTSIDE_OF_TESTS = "(the process, outside of its tests)"
    # After so many tests that hang or crash the rest of the file is not run: each hang takes the whole limit.
    MAX_BROKEN = 5
    # Ruby's tests multiply their own deadlines by it: another file's tests run at the same time.
    TIMEOUT_SCALE = "3"

    # @param plan [Plan]
    # @param limit [Numeric] seconds for one test
    def initialize(plan, limit:)
      @plan = plan
      @limit = limit
      @results = {}
    end

    # @return [Array<Result>]
    def results
      @results = @results.merge(run_rest) until @complete || given_up?
      @results.values
    end

    private

    def given_up? = @results.values.count(&:broken?) >= MAX_BROKEN

    # @return [Hash{String => Result}]
    def run_rest
      Dir.mktmpdir("torture") do |folder|
        log = Log.new(File.join(folder, "events"))
        process = start(folder, log)
        status = process.wait(@limit) { log.size }
        results = log.results(@plan.file)
        broken = broken(log, status, process.output)
        # Don't try again if the process has ended early without running any test.
        @complete = log.complete? || (log.current.nil? && results.empty?)
        [*results, *broken].to_h { |result| [result.test, result] }
      end
    end

    def start(folder, log)
      plan = File.join(folder, "plan")
      File.binwrite(plan, Marshal.dump(@plan.with(except: @plan.except + @results.keys).to_h.merge(events: log.path)))
      command = [RbConfig.ruby, "-W1", "-I", File.join(@plan.tree, "tool/lib"), CHILD, plan]
      ChildProcess.new(command, log: File.join(folder, "output"), environment: environment(folder))
    end

    def environment(folder)
      temporary = File.join(folder, "tmp")
      Dir.mkdir(temporary)
      ChildProcess.environment.except("HEDDLE_BACKEND")
                  .merge("TMPDIR" => temporary, "RUBY_TEST_TIMEOUT_SCALE" => TIMEOUT_SCALE)
    end

    # @return [Result, nil] the test in which the process ended early
    def broken(log, status, output)
      return if log.complete? && status&.success?

      outcome, ending = if status
                          [:crashed, "The process ended: #{status}"]
                        else
                          [:hung, "No test ended within #{@limit} s"]
                        end
      Result.new(@plan.file, log.current || OUTSIDE_OF_TESTS, outcome, "#{ending}\n#{output}", log.seconds, [])
    end
  end
end
