# frozen_string_literal: true

require_relative "../../run/clock"

# Repeats a workload of a fixed number of operations, with a new scheduler each time, until enough time was measured.
# Otherwise a contestant that is thirty times as fast would be measured for a thirtieth of the time. Sums are over the
# repetitions; `starved` is the worst of them. A workload that runs for a given time needs one repetition.
#
# BENCH_SCALE scales the time and the workloads' sizes: 0.1 for a quick look, 1 for figures to be published.
module Repeating
  SCALE = Float(ENV.fetch("BENCH_SCALE", "1"))
  ENOUGH = 0.5 * SCALE

  def measure(contestant)
    results = []
    cpu = Clock.cpu
    results << (contestant.bare? ? bare : once(contestant)) until enough?(results)
    cpu = Clock.cpu - cpu
    all = sum(results)
    all.merge(cpu_seconds: cpu, cpu_us: cpu / all[:operations] * 1e6)
  end

  private

  def enough?(results) = results.any? && results.sum { |result| result[:seconds] } >= ENOUGH

  def sum(results)
    total = %i[operations expected ended fibers seconds].to_h { |key| [key, results.sum { |result| result[key] }] }
    total.merge(rate: total[:operations] / total[:seconds],
                starved: results.map { |result| result[:starved] }.max)
  end

  def scaled(number) = [(number * SCALE).round, 1].max
end
