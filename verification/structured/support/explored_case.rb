# frozen_string_literal: true

# A program that is the same under every schedule, and how it is explored.
class ExploredCase
  PATHS = %w[structured coordination pools].map { |folder| File.expand_path("../../../lib/heddle/#{folder}", __dir__) }

  # How many schedules a case has at most of which all are tried.
  MOST_RUNS = 5_000
  private_constant :MOST_RUNS

  # What a case raises where it is right that an error is raised.
  class Expected < StandardError; end

  # @return [String]
  attr_reader :subject

  # @param subject [String] a class, or what a case is about
  # @param name [String]
  # @param preemptions [Integer] the bound of the exhaustive search
  # @param all_in [Array<String>, nil] files: all schedules with so many preemptions at points in these are tried
  # @param threads [Boolean] whether other threads take part, so that a schedule is not the same each time
  # @yield the program
  def initialize(subject, name, preemptions: 1, all_in: nil, threads: false, &program)
    @subject = subject
    @name = name
    @preemptions = preemptions
    @all_in = all_in
    @threads = threads
    @program = program
  end

  # @param runs [Integer] how many schedules are tried exhaustively
  # @param seeds [Integer] how many are tried by seed
  # @return [Boolean] whether no run has failed
  def explore(runs, seeds)
    return explore_all if @all_in

    by_preemptions = { strategy: :exhaustive, preemptions: @preemptions, runs: }
    by_seed = { strategy: :random, runs: seeds }
    report_failure do
      [(by_preemptions unless @threads), by_seed].compact.each { |options| explore_by(**options) }
      true
    end
  end

  private

  def explore_all
    report_failure do
      summary = explore_by(strategy: :exhaustive, preemptions: @preemptions, runs: MOST_RUNS)
      puts "#{summary.runs} runs#{", and not all" unless summary.complete}: #{@subject}: #{@name}"
      summary.complete
    end
  end

  def explore_by(**) = Heddle::Testing.explore(paths: @all_in || PATHS, clock: @threads ? :real : :virtual, **) { run }

  def report_failure
    yield
  rescue Heddle::Testing::Failure => e
    puts "#{@subject}: #{@name}\n#{e.message}"
    false
  end

  def run
    before = Heddle.fibers.size
    @program.call
    left = Heddle.fibers.size - before
    raise "#{left} fibers are left" if left.positive?
  end
end
