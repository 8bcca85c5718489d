# frozen_string_literal: true

require "etc"
require_relative "file_run"
require_relative "plain_outcomes"
require_relative "known_differences"
require_relative "report"
require_relative "suite"

module Torture
  # Runs files of Ruby's test suite inside Heddle, on one backend after the other, and compares the outcomes with plain
  # Ruby's.
  class Runner
    LIST = File.join(__dir__, "differences.yml")
    # Where the outcomes of plain Ruby and the last reports are kept.
    FOLDER = File.expand_path("../../tmp/torture", __dir__)

    # The options of Heddle.run, and whether other fibers run beside each test.
    MODES = {
      "waiting" => { options: {}, companions: false },
      "preempted" => { options: { preempt: :all, tick: 0.0001, quantum: 0.001 }, companions: true }
    }.freeze

    # files: parts of the names of the files to run; empty for all of the mode. listed: whether to run the tests that
    # differences.yml lists, and no others. jobs: how many files at a time. limit: seconds for one test.
    Settings = Data.define(:files, :listed, :jobs, :limit) do
      def initialize(files: [], listed: false, jobs: Etc.nprocessors, limit: 60) = super
    end

    # @param tree [String] a Ruby source tree
    # @param mode ["waiting", "preempted"]
    # @param backends [Array<String>]
    # @param settings [Hash] see Settings
    def initialize(tree, mode:, backends:, **settings)
      @suite = Suite.new(tree)
      @mode = mode
      @backends = backends
      @settings = Settings.new(**settings)
      @files = @suite.files(mode, @settings.files)
      @lock = Mutex.new
      @known = backends.to_h { |backend| [backend, known(mode, backend)] }
      @plain = PlainOutcomes.new(@suite.tree, folder: FOLDER, limit: @settings.limit)
    end

    # @return [Boolean] whether nothing differs from plain Ruby
    def run
      puts "#{@files.size} files of #{@suite.tree} on Ruby #{RUBY_VERSION}, #{@mode}, with #{@backends.join(" and ")}"
      comparisons = run_all
      reports = @backends.map { |backend| report(backend, comparisons.fetch(backend, [])) }
      reports.all?(&:success?)
    ensure
      @plain.save
    end

    private

    def known(mode, backend)
      KnownDifferences.new(LIST, rubies: RUBY_VERSION[/\d+\.\d+/], modes: mode, backends: backend)
    end

    # Prints it, and keeps the whole of it.
    def report(backend, comparisons)
      report = Report.new(backend, comparisons, @known.fetch(backend), listed: @settings.listed)
      report.write(File.join(FOLDER, "#{RUBY_VERSION}-#{@mode}-#{backend}.txt"))
      puts report.lines
      report
    end

    # @return [Hash{String => Array<Comparison>}] by backend
    def run_all
      # Both backends of a file one after the other, so that a file that takes long is not the last one of each.
      waiting = Queue.new(@files.product(@backends)).close
      done = Hash.new { |hash, backend| hash[backend] = [] }
      Array.new(@settings.jobs) { Thread.new { compare_all(waiting, done) } }.each(&:join)
      puts
      done
    end

    def compare_all(waiting, done)
      while (file, backend = waiting.pop)
        comparisons = compare(file, backend)
        @lock.synchronize { done[backend].concat(comparisons) }
      end
    end

    # @return [Array<Comparison>] of each test of the file
    def compare(file, backend)
      listed = @known.fetch(backend).tests
      results = run_file(file, backend, **(@settings.listed ? { only: listed } : { except: listed }))
      plain = @plain.outcomes(file, results.reject(&:passed?).map(&:test))
      comparisons = results.map do |result|
        comparison = Comparison.new(backend, result, result, plain[result.test])
        comparison.differs? ? comparison.with(last: run_again(result, backend)) : comparison
      end
      print(sign(comparisons))
      comparisons
    end

    # Runs a test alone, in a process of its own, up to three times. Ruby's tests judge by the clock: one that failed
    # because the machine was busy passes then.
    def run_again(result, backend)
      3.times do
        again = run_file(result.file, backend, only: [result.test]).find { |one| one.test == result.test }
        result = again || result
        break if result.passed?
      end
      result
    end

    # Printed at once, as the whole run takes long.
    def sign(comparisons)
      [*comparisons.select(&:differs?).map { |comparison| "\n#{comparison.headline}\n" }, "."].join
    end

    def run_file(file, backend, **tests)
      mode = MODES.fetch(@mode)
      options = { backend: backend.to_sym, **mode[:options] }
      plan = Plan.new(tree: @suite.tree, file:, around: :heddle, options:, companions: mode[:companions], **tests)
      FileRun.new(plan, limit: @settings.limit).results
    end
  end
end
