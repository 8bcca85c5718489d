# frozen_string_literal: true

require_relative "bench_case"
require_relative "../contestants"
require_relative "mark"

# The cases of `rake bench`. The marks of the io_uring backend, `:heddle`, are Heddle's targets. Those of the poll
# backend are what a scheduler with plain epoll reaches: poll may be slower than io_uring, but not slower than that.
module ThroughputCatalogue
  ALL = Contestants::THROUGHPUT
  NO_BARE = ALL - ["bare"]
  # UringMachine treats `sleep(0)` as an endless wait.
  SWITCHING = (ALL - ["uringmachine"]).freeze
  # The cases whose operations fit into UringMachine's default ring.
  WITH_SMALL_RING = [*NO_BARE, "uringmachine-default"].freeze
  LESS = { more_is_better: false }.freeze

  module_function

  def marks(heddle, poll = heddle)
    { heddle: Array(heddle), "heddle-poll" => Array(poll) }
  end

  def at_least(heddle, poll = heddle) = marks(Mark.at_least(heddle), Mark.at_least(poll))

  # A rate depends on what else the machine does; the CPU time of an operation, `cpu_us`, hardly does.
  def bench(name, title, **given)
    given = { contestants: NO_BARE, figure: :rate, extras: [], **given }
    given[:extras] |= [:cpu_us] if given[:figure] == :rate
    BenchCase.new(name:, title:, **given)
  end

  def growth(connections)
    bench("growth_#{connections}", "growth, #{connections} connections",
          contestants: ALL, workload: "growth", parameters: { connections: }, figure: :cpu_us,
          unit: "µs of CPU per echo", **LESS, **grown(connections))
  end

  # The mark limits the cost with the most connections, relative to the cost with the fewest.
  def grown(connections)
    case connections
    when 10 then {}
    when 10_000 then { relative_to: "growth_10", extras: [:growth], marks: marks(Mark.at_most(1.5, :growth)) }
    else { relative_to: "growth_10", extras: [:growth] }
    end
  end

  CASES = [
    bench("switch_2", "switch, 2 fibers", workload: "switch", parameters: { fibers: 2 },
                                          contestants: SWITCHING, marks: at_least(24, 30)),
    bench("switch_1000", "switch, 1,000 fibers", workload: "switch", parameters: { fibers: 1000 },
                                                 contestants: SWITCHING, marks: at_least(13, 12.6)),
    bench("queue_pingpong", "Queue, ping-pong", contestants: ALL, marks: at_least(6.5, 5.9)),
    bench("pipe", "pipe, 50 × 1 KiB", contestants: ALL, marks: at_least(1.8, 1.45)),
    bench("socketpair", "socketpair, 50 × 1 KiB", contestants: ALL, marks: at_least(1.6, 1.25)),
    bench("mixed_sizes", "TCP, 20 × 64 B to 256 KiB", unit: "messages/s"),
    bench("client_calls", "Net::HTTP, 20 × 1 KiB", workload: "http_client", parameters: { size: 1024 },
                                                   unit: "responses/s"),
    bench("client_downloads", "Net::HTTP, 20 × 1 MiB", workload: "http_client", parameters: { size: 1 << 20 },
                                                       unit: "responses/s"),
    bench("pool", "10 connections, uses of 1 ms", unit: "uses/s", extras: %i[share_of_ideal]),
    bench("heartbeats", "200 connections, heartbeats", unit: "pongs/s"),
    bench("name_lookups", "names of /etc/hosts", unit: "look-ups/s"),
    bench("tcp_echo", "TCP echo, 50 connections", contestants: WITH_SMALL_RING, extras: %i[p50_ms p99_ms],
                                                  marks: marks([Mark.at_least(1.7), Mark.at_most(1, :p99_ms)],
                                                               [Mark.at_least(1.17), Mark.at_most(1.25, :p99_ms)])),
    bench("http", "HTTP, 64 connections", contestants: WITH_SMALL_RING, extras: %i[p50_ms p99_ms],
                                          marks: at_least(1.7, 1.2)),
    bench("lines", "HTTP by lines, 64 connections", workload: "http_lines", contestants: WITH_SMALL_RING,
                                                    extras: %i[p50_ms p99_ms], marks: at_least(1.2)),
    bench("http_calls", "HTTP, system calls", workload: "http", figure: :calls, unit: "calls per request", **LESS,
                                              traced: true,
                                              marks: marks(Mark.at_most(0.03, :calls), Mark.at_most(2.05, :calls))),
    bench("timers", "10,000 sleepers", extras: %i[share_of_ideal p99_ms],
                                       marks: marks([Mark.at_least(5.9), Mark.at_least(0.95, :share_of_ideal),
                                                     Mark.at_most(15, :p99_ms)],
                                                    [Mark.at_least(5.2), Mark.at_least(0.83, :share_of_ideal),
                                                     Mark.at_most(43, :p99_ms)])),
    bench("spawn", "spawn", contestants: ALL, unit: "fibers/s", marks: at_least(3.7, 2.9)),
    bench("mutex_io", "log lines under a Mutex", marks: marks([Mark.at_least(1.3), Mark.at_most(0, :starved)])),
    bench("file_read", "files of 64 KiB", marks: marks([Mark.at_least(1.3), Mark.at_most(0, :starved)])),
    bench("xthread", "thread to fiber and back", marks: at_least(2, 1.76)),
    bench("idle", "10,000 idle connections", figure: :kib, unit: "KiB per connection", **LESS,
                                             marks: marks(Mark.at_most(13.5, :kib))),
    *[10, 100, 1_000, 10_000].map { |connections| growth(connections) }
  ].freeze
end
