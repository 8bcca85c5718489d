# frozen_string_literal: true

require_relative "clock"

# The frame of the workloads that do a fixed number of operations: repeats them with a new scheduler each time until
# enough time was measured, so that a contestant that is thirty times as fast is not measured for a thirtieth of the
# time. Sums are over the repetitions; starved is the worst of them. Workloads that go on for a time (Turns) need one.
#
# BENCH_SCALE scales the time and the workloads' sizes: 0.1 for a quick look, 1 for figures to be told.
module Repeating
  SCALE = Float(ENV.fetch("BENCH_SCALE", "1"))
  ENOUGH = 0.5 * SCALE

  def measure(contestant)
    results = []
    cpu = Clock.cpu
    results << (contestant.bare? ? bare : once(contestant)) until enough?(results)
    sum(results).merge(cpu_seconds: Clock.cpu - cpu)
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
