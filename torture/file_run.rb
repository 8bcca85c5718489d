# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "tmpdir"
require_relative "child_process"

module Torture
  # How one test ended.
  #
  # outcome: :passed, :skipped (by itself), :failed, :crashed (the process ended, or the file couldn't be loaded),
  # or :hung.
  Result = Data.define(:file, :test, :outcome, :message, :seconds, :leaks) do
    def passed? = outcome == :passed
    def key = [file, test]
  end

  # Runs the tests of one file in child processes. When a test hangs or crashes, the rest of the file is run in another
  # process.
  class FileRun
    CHILD = File.join(__dir__, "child.rb")

    # @param tree [String] the Ruby source tree
    # @param file [String]
    # @param environment [Hash] of the plan: around, options, company
    # @param limit [Numeric] seconds for one test
    # @param only [Array<String>, nil] the tests to run; nil for all
    # @param except [Array<String>] the tests not to run
    def initialize(tree, file, environment, limit:, only: nil, except: [])
      @tree = tree
      @file = file
      @environment = environment
      @limit = limit
      @only = only
      @except = except
      @results = {}
    end

    # @return [Array<Result>]
    def results
      loop { break unless run_rest }
      @results.values
    end

    private

    # Whether there is still something left to run.
    def run_rest
      before = @results.size
      Dir.mktmpdir("torture") do |folder|
        log = Log.new(File.join(folder, "events"))
        process = ChildProcess.new(command(folder, log), log: File.join(folder, "output"), environment: variables(folder))
        status = process.wait(@limit) { log.size }
        record(log, status, process.output)
      end
      @results.size > before && !@complete
    end

    def command(folder, log)
      plan = File.join(folder, "plan")
      except = @except + @results.keys
      File.binwrite(plan, Marshal.dump({ tree: @tree, file: @file, events: log.path, only: @only, except:,
                                         **@environment }))
      [RbConfig.ruby, "-W1", "-I", File.join(@tree, "tool/lib"), CHILD, plan]
    end

    def variables(folder)
      temporary = File.join(folder, "tmp")
      Dir.mkdir(temporary)
      # Another file's tests run at the same time, and maybe something else on this machine.
      ChildProcess.environment.except("HEDDLE_BACKEND").merge("TMPDIR" => temporary, "RUBY_TEST_TIMEOUT_SCALE" => "3")
    end

    def record(log, status, output)
      log.results(@file).each { |result| @results[result.test] = result }
      @complete = log.complete?
      return if @complete && status&.success?

      name = log.current || "(the process of the tests)"
      @complete ||= log.current.nil?
      outcome = status ? :crashed : :hung
      @results[name] = Result.new(@file, name, outcome, [ending(status), output].join("\n"), log.seconds, [])
    end

    def ending(status) = status ? "The process ended: #{status}" : "No test ended within #{@limit} s"
  end

  # What a child process has told, line by line.
  class Log
    attr_reader :path

    def initialize(path)
      @path = path
    end

    # Grows with each event.
    def size = File.size?(@path)

    # @return [String, nil] the test that was running last, if it didn't end
    def current
      started = of(:start).last&.first
      started unless outcomes.key?(started) && ends.key?(started)
    end

    # Whether all tests were run.
    def complete? = events.any? { |kind,| kind == :done }

    # Seconds from the last start until now.
    def seconds = Time.now - File.mtime(@path)

    def results(file)
      outcomes.filter_map do |test, (outcome, message)|
        # One that passed and then never ended did not pass.
        next unless ends.key?(test)

        Result.new(file, test, outcome, message, ends.fetch(test), leaks.fetch(test, []))
      end
    end

    private

    def events
      @events ||= File.exist?(@path) ? File.readlines(@path, chomp: true).map { |line| Marshal.load(line.unpack1("m0")) } : []
    end

    def of(kind) = events.filter_map { |event, *rest| rest if event == kind }

    # Of a test and its teardown, the worse one counts.
    def outcomes
      @outcomes ||= of(:outcome).each_with_object({}) do |(test, outcome, message), outcomes|
        outcomes[test] = [outcome, message] unless outcomes.dig(test, 0) == :failed
      end
    end

    def ends = @ends ||= of(:end).to_h

    def leaks
      @leaks ||= begin
        test = nil
        events.each_with_object({}) do |(kind, *rest), leaks|
          test = rest.first if kind == :start
          (leaks[test] ||= []).concat(rest) if kind == :leak
        end
      end
    end
  end
end
