# frozen_string_literal: true

require_relative "../contestants"
require_relative "../report/comparison_table"
require_relative "runner"
require_relative "session"

# Measures the Heddle of two trees in alternation: `this` tree, and `base`, another built checkout. Both run this tree's
# workloads; only the folder that Heddle is loaded from differs.
#
# A round measures both trees one after the other, and every other round begins with the other tree. A ratio is that of
# two measurements of one round, so that what slows the machine down for longer than a round does not change it.
class Comparison
  TREES = %i[base this].freeze

  def initialize(base, cases, rounds:)
    library = File.expand_path("lib", base)
    abort "BASE=#{base} is no built checkout: #{library}/heddle holds no library" unless built?(library)

    cases = cases.map { |bench| of_heddle(bench) }
    @sessions = TREES.zip([Runner.new(library:), Runner.new]).to_h do |tree, runner|
      [tree, Session.new("comparison", cases, rounds:, runner:)]
    end
  end

  def rounds = @sessions[:this].rounds

  def find_contestants = @sessions.each_value(&:find_contestants)

  # Yields every case, round, contestant and tree in the order in which they are to be measured.
  def each
    @sessions[:this].each do |bench, round, contestant|
      TREES.rotate(round).each { |tree| yield bench, round, contestant, tree }
    end
  end

  def measure(bench, contestant, tree) = @sessions[tree].measure(bench, contestant)

  def to_s = ComparisonTable.new(*TREES.map { |tree| @sessions[tree].results }).to_s

  private

  # Compares CPU times, where they are measured: a rate may have a ceiling, which hides what an operation costs.
  def of_heddle(bench)
    compared = bench.extras.include?(:cpu_us) ? { figure: :cpu_us, unit: "µs of CPU", more_is_better: false } : {}
    bench.with(contestants: bench.contestants & Contestants::HEDDLE, extras: bench.extras - [:cpu_us], **compared)
  end

  def built?(library) = Dir.exist?("#{library}/heddle/#{RUBY_VERSION[/\d+\.\d+/]}")
end
