# frozen_string_literal: true

# What a trace costs while it runs: CPU time for a request of the workload `http`, with a trace and without one.
#
#   ruby -Ilib benchmarks/trace_cost.rb [seconds for each backend]      a minute by default
#
# A server is under load all the time. Intervals with a trace and without one alternate, so other work of the machine
# affects both alike; the tenth percentiles of both are compared. No trace is written.
#
# Needs wrk, and two processors: one for the server, one for the clients.

require "delegate"
require "rbconfig"
require_relative "contestants"
require_relative "run/machine"
require_relative "workloads/throughput/http"

# The workload, with its intervals.
class TracedHttp < Http
  # Seconds.
  INTERVAL = 0.1
  PERCENTILE = 0.1

  # Where no trace is written.
  class Nowhere
    def write(_) = raise(IOError, "not to be written")
  end

  # A contestant that runs another fiber beside the server.
  class Accompanied < SimpleDelegator
    def initialize(contestant, &fiber)
      super(contestant)
      @fiber = fiber
    end

    def run
      super do
        Fiber.schedule(&@fiber)
        yield
      end
    end
  end

  def initialize(**)
    super
    @answers = 0
    @took = { false => [], true => [] }
  end

  # Returns the microseconds for a request without a trace and with one, and how many intervals there were of each.
  def measure(contestant)
    super(Accompanied.new(contestant) { alternate })
    [*@took.values_at(false, true).map { |times| times.sort[times.size * PERCENTILE] * 1e6 }, @took[true].size]
  end

  private

  def converse(socket)
    super do
      @answers += 1
      yield
    end
  end

  def alternate
    ends = Clock.now + in_time
    sleep INTERVAL
    while Clock.now < ends
      interval(false)
      traced_interval
    end
  end

  def traced_interval
    Heddle.trace(Nowhere.new) { interval(true) }
  rescue IOError
    nil
  end

  def interval(traced)
    before = Clock.cpu
    answers = @answers
    sleep INTERVAL
    @took[traced] << ((Clock.cpu - before) / (@answers - answers))
  end
end

if ARGV.first == "--measure"
  backend = ARGV.fetch(1)
  contestant = HeddleContestant.new(backend, backend, backend: backend.to_sym)
  contestant.prepare
  plain, traced, intervals = TracedHttp.new(seconds: Float(ARGV.fetch(2))).measure(contestant)
  puts format("%<backend>-9s %<plain>6.2f µs for a request, %<traced>6.2f µs while a trace runs: %<change>+.1f %% " \
              "(%<intervals>d intervals of each)", backend:, plain:, traced:, intervals:,
                                                   change: ((traced / plain) - 1) * 100)
else
  Machine.need("wrk")
  %w[io_uring poll].each do |backend|
    command = [RbConfig.ruby, "-I#{File.expand_path("../lib", __dir__)}", __FILE__, "--measure", backend,
               ARGV.fetch(0, "30")]
    system(*Machine.on(Machine::SERVER, command), exception: true)
  end
end
