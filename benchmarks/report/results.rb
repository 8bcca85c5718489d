# frozen_string_literal: true

require_relative "../contestants"
require_relative "statistics"

# All measurements, by case and contestant, one Hash per round, and the figures that are reported.
class Results
  ALONE = "plain"

  attr_reader :missing, :versions

  def initialize(cases)
    @cases = cases
    @rounds = Hash.new { |all, name| all[name] = Hash.new { |of_case, contestant| of_case[contestant] = [] } }
    @missing = {}
    @versions = {}
  end

  def cases = @cases.select { |bench| @rounds.key?(bench.name) }

  def add(bench, contestant, result) = @rounds[bench.name][contestant.name] << result

  # The contestants of a case that have figures, in the case's order.
  def contestants(bench)
    bench.contestants.map { |name| Contestants.find(name) }
         .select { |contestant| values(bench.name, contestant.name, bench.figure).any? }
  end

  def values(case_name, contestant_name, key)
    @rounds.dig(case_name, contestant_name).to_a.map { |result| result[key] }.compact
  end

  # The case's figure for every round, nil where the round has none.
  def by_round(bench, contestant)
    @rounds.dig(bench.name, contestant.name).to_a.map { |result| result[bench.figure] }
  end

  def samples(bench, contestant, key) = values(bench.name, contestant.name, key).flatten

  # Why a contestant has no figures in a case, or fewer of them.
  def troubles(bench)
    @rounds[bench.name].flat_map do |name, results|
      reasons = results.map { |result| result[:left_out] || (result[:failed] && "failed: #{result[:failed]}") }
      reasons.compact.uniq.map { |reason| "#{Contestants.find(name).title}: #{reason}" }
    end
  end

  def figures(bench, contestant)
    values = values(bench.name, contestant.name, bench.figure)
    extras = bench.extras.to_h { |key| [key, Statistics.median(values(bench.name, contestant.name, key))] }
    { bench.figure => Statistics.median(values), least: values.min, greatest: values.max,
      spread: Statistics.spread(values), ratio: ratio(bench, contestant.name, values),
      starved: values(bench.name, contestant.name, :starved).max, **extras, **relative(bench, contestant.name) }
  end

  def to_h
    cases.to_h do |bench|
      [bench.name, { title: bench.title, unit: bench.unit, troubles: troubles(bench),
                     contestants: contestants(bench).to_h do |contestant|
                       [contestant.name, { figures: figures(bench, contestant),
                                           rounds: @rounds[bench.name][contestant.name] }]
                     end }]
    end
  end

  private

  # Figures relative to another case, or to the same work done alone.
  def relative(bench, name)
    { growth: (growth(bench, name) if bench.relative_to),
      cpu_overhead: (cpu_overhead(bench, name) if bench.contestants.include?(ALONE)) }.compact
  end

  # The ratio to the reference: more is better, whatever is measured.
  def ratio(bench, name, values)
    references = values(bench.name, bench.reference, bench.figure)
    return if references.empty? || name == bench.reference

    bench.more_is_better ? Statistics.ratio(values, references) : Statistics.ratio(references, values)
  end

  # CPU time in excess of that of the same work done alone in the same round.
  def cpu_overhead(bench, name)
    ratio = Statistics.ratio(*[name, ALONE].map { |each| values(bench.name, each, :cpu_seconds) })
    ratio - 1 if ratio
  end

  def growth(bench, name)
    before = Statistics.median(values(bench.relative_to, name, bench.figure))
    after = Statistics.median(values(bench.name, name, bench.figure))
    after / before if before && after
  end
end
