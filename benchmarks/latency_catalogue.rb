# frozen_string_literal: true

require_relative "support/bench_case"
require_relative "support/contestants"
require_relative "support/mark"

# What `rake bench:latency` measures: how late those are who share a thread with fibers that compute. The hogs have the
# same work in all, however many they are: with 64 of them each has little of it, but a scheduler that gives each a
# slice before a sleeper's turn comes has 64 slices to give.
#
# `plain` is the same work with nobody beside; CPU time is told relative to it. `units: nil` is calibrated.
module LatencyCatalogue
  WITH_PLAIN = [*Contestants::LATENCY, "plain"].freeze
  LATENESS = "ms late, p99"

  module_function

  def hogs(count)
    BenchCase.new(name: "hogs_#{count}", title: "#{count} #{count == 1 ? "hog" : "hogs"}, sleepers",
                  workload: "beside_hogs", parameters: { hogs: count, units: nil }, contestants: WITH_PLAIN,
                  figure: :p99_1ms, unit: LATENESS, more_is_better: false,
                  marks: { heddle: [Mark.at_most(2, :p99_1ms), Mark.at_most(0.01, :cpu_overhead)] },
                  extras: %i[p50_1ms p90_1ms max_1ms p99_10ms max_10ms cpu_overhead least_share])
  end

  # Whoever preempts nobody because nobody asks for it, against whoever was told to preempt nobody.
  def nobody(backend)
    names = Contestants::PREEMPTING_NOBODY.grep(/#{backend}/)
    BenchCase.new(name: "nobody_#{backend}", title: "preempting nobody, #{backend}", workload: "switch",
                  parameters: { fibers: 2 }, contestants: names, unit: "switches/s", reference: names.first,
                  marks: { names.last => [Mark.at_least(0.99)] })
  end

  CASES = [
    *[1, 4, 16, 64].map { |count| hogs(count) },
    BenchCase.new(name: "alone_4", title: "4 hogs, no sleepers", workload: "beside_hogs",
                  parameters: { hogs: 4, units: nil, sleepers: 0 }, contestants: WITH_PLAIN, figure: :cpu_seconds,
                  unit: "s of CPU", more_is_better: false, extras: %i[cpu_overhead least_share],
                  marks: { heddle: [Mark.at_most(0.01, :cpu_overhead)] }),
    BenchCase.new(name: "echo_4", title: "4 hogs, echo", workload: "echo_beside_hogs",
                  parameters: { hogs: 4, units: nil },
                  contestants: Contestants::LATENCY, figure: :p99_ms, unit: "ms, p99",
                  more_is_better: false, extras: %i[p50_ms p90_ms max_ms least_share],
                  marks: { heddle: [Mark.at_most(3, :p99_ms)] }),
    BenchCase.new(name: "shares_4", title: "4 hogs' shares, echoes", workload: "shares_beside_echoes",
                  parameters: { hogs: 4, unit_ms: nil }, contestants: Contestants::LATENCY,
                  figure: :least_share, unit: "of a fair share", extras: %i[greatest_share hogs_share rate],
                  marks: { heddle: [Mark.at_least(0.9, :least_share), Mark.at_most(1.1, :greatest_share)] }),
    nobody("io_uring"),
    nobody("poll")
  ].freeze
end
