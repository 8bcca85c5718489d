# frozen_string_literal: true

require_relative "bench_case"
require_relative "../contestants"
require_relative "mark"

# The cases of `rake bench:latency`: how late fibers are that share a thread with CPU-bound fibers. The CPU-bound fibers
# have the same work in all, however many they are: with 64 of them, each has little. But a scheduler that gives each a
# time slice before a sleeper runs has 64 slices to give.
#
# `plain` does the same work alone; CPU time is reported relative to it. A parameter that is nil is calibrated.
module LatencyCatalogue
  WITH_PLAIN = [*Contestants::LATENCY, "plain"].freeze
  LATENESS = "ms late, p99"

  module_function

  def cpu_bound(count)
    BenchCase.new(name: "cpu_bound_#{count}", title: "#{count} CPU-bound, sleepers",
                  workload: "beside_cpu_bound", parameters: { fibers: count, units: nil }, contestants: WITH_PLAIN,
                  figure: :p99_1ms, unit: LATENESS, more_is_better: false,
                  marks: { heddle: [Mark.at_most(2, :p99_1ms), Mark.at_most(2, :max_1ms),
                                    Mark.at_most(0.01, :cpu_overhead)] },
                  extras: %i[p50_1ms p90_1ms max_1ms p99_10ms max_10ms cpu_overhead least_share])
  end

  # The default `preempt: :yielding`, in a program without a yielding fiber, against `preempt: :none`.
  def unused_preemption(backend)
    names = Contestants::UNUSED_PREEMPTION.grep(/#{backend}/)
    BenchCase.new(name: "unused_preemption_#{backend}", title: "unused preemption, #{backend}", workload: "switch",
                  parameters: { fibers: 2 }, contestants: names, unit: "switches/s", reference: names.first,
                  marks: { names.last => [Mark.at_least(0.99)] })
  end

  CASES = [
    *[1, 4, 16, 64].map { |count| cpu_bound(count) },
    BenchCase.new(name: "alone_4", title: "4 CPU-bound, no sleepers", workload: "beside_cpu_bound",
                  parameters: { fibers: 4, units: nil, sleepers: 0 }, contestants: WITH_PLAIN, figure: :cpu_seconds,
                  unit: "s of CPU", more_is_better: false, extras: %i[cpu_overhead least_share],
                  marks: { heddle: [Mark.at_most(0.01, :cpu_overhead)] }),
    BenchCase.new(name: "echo_4", title: "4 CPU-bound, echo", workload: "echo_beside_cpu_bound",
                  parameters: { fibers: 4, units: nil },
                  contestants: Contestants::LATENCY, figure: :p99_ms, unit: "ms, p99",
                  more_is_better: false, extras: %i[p50_ms p90_ms max_ms least_share],
                  marks: { heddle: [Mark.at_most(3, :p99_ms)] }),
    BenchCase.new(name: "streams_99", title: "1 CPU-bound, 99 streams", workload: "streams_beside_cpu_bound",
                  parameters: { streams: 99, fibers: 1, units: nil },
                  contestants: [*Contestants::PREEMPTING, "async", *Contestants::THREADS], figure: :p99_ms,
                  unit: "ms gap, p99", more_is_better: false, extras: %i[p50_ms p90_ms max_ms gaps]),
    BenchCase.new(name: "shares_4", title: "4 CPU-bound, shares", workload: "shares_beside_echoes",
                  parameters: { fibers: 4, unit_ms: nil }, contestants: Contestants::LATENCY,
                  figure: :least_share, unit: "of a fair share", extras: %i[greatest_share cpu_bound_share rate],
                  marks: { heddle: [Mark.at_least(0.9, :least_share), Mark.at_most(1.1, :greatest_share)] }),
    BenchCase.new(name: "starts_500", title: "500 writers start", workload: "starting_writers",
                  parameters: { writers: 500 }, contestants: [*Contestants::HEDDLE, "async", *Contestants::THREADS],
                  figure: :last_begun_ms, unit: "ms until the last has begun", more_is_better: false,
                  extras: %i[begun_in_half_a_second]),
    unused_preemption("io_uring"),
    unused_preemption("poll")
  ].freeze
end
