# frozen_string_literal: true

# A program that is the same under every schedule, and how it is explored.
class ExploredCase
  PATHS = %w[structured coordination pools].map { |folder| File.expand_path("../../../lib/heddle/#{folder}", __dir__) }

  # What a case raises where it is right that an error is raised.
  class Expected < StandardError; end

  # @return [String]
  attr_reader :subject

  # @param subject [String] a class, or what a case is about
  # @param name [String]
  # @param preemptions [Integer] the bound of the exhaustive search
  # @param threads [Boolean] whether other threads take part, so that a schedule is not the same each time
  # @yield the program
  def initialize(subject, name, preemptions: 1, threads: false, &program)
    @subject = subject
    @name = name
    @preemptions = preemptions
    @threads = threads
    @program = program
  end

  # @param runs [Integer] how many schedules are tried exhaustively
  # @param seeds [Integer] how many are tried by seed
  # @return [Boolean] whether no run has failed
  def explore(runs, seeds)
    by_preemptions = { strategy: :exhaustive, preemptions: @preemptions, runs: }
    by_seed = { strategy: :random, runs: seeds }
    [(by_preemptions unless @threads), by_seed].compact.each do |strategy|
      Heddle::Testing.explore(paths: PATHS, clock: @threads ? :real : :virtual, **strategy) { run }
    end
    true
  rescue Heddle::Testing::Failure => e
    puts "#{@subject}: #{@name}\n#{e.message}"
    false
  end

  private

  def run
    before = Heddle.fibers.size
    @program.call
    left = Heddle.fibers.size - before
    raise "#{left} fibers are left" if left.positive?
  end
end
