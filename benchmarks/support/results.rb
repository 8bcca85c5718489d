# frozen_string_literal: true

require_relative "contestants"
require_relative "statistics"

# All that was measured: by case, by contestant, one Hash per round; and the figures that are told of it.
class Results
  ALONE = "plain"

  attr_reader :missing, :versions

  def initialize(cases)
    @cases = cases
    @rounds = Hash.new { |all, name| all[name] = Hash.new { |case_results, who| case_results[who] = [] } }
    @missing = {}
    @versions = {}
  end

  def cases = @cases.select { |bench| @rounds.key?(bench.name) }

  def add(bench, contestant, result) = @rounds[bench.name][contestant.name] << result

  # The contestants of a case, in its order, that have figures.
  def contestants(bench)
    bench.contestants.map { |name| Contestants.find(name) }
         .select { |contestant| values(bench.name, contestant.name, bench.figure).any? }
  end

  def values(case_name, contestant_name, key)
    @rounds.dig(case_name, contestant_name).to_a.map { |result| result[key] }.compact
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

  # What is told relative to another case, or to the same work with nobody beside.
  def relative(bench, name)
    { growth: (growth(bench, name) if bench.relative_to),
      cpu_overhead: (cpu_overhead(bench, name) if bench.contestants.include?(ALONE)) }.compact
  end

  # How many times as good as the reference: more is better, whatever is measured.
  def ratio(bench, name, values)
    references = values(bench.name, bench.reference, bench.figure)
    return if references.empty? || name == bench.reference

    bench.more_is_better ? Statistics.ratio(values, references) : Statistics.ratio(references, values)
  end

  # More CPU time than the same work took in the same round with nobody beside.
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
