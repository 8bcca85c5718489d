# frozen_string_literal: true

require_relative "../../report/statistics"
require_relative "../support/cpu_bound_fibers"

# Sleepers beside CPU-bound fibers: two sleep 1 ms and two sleep 10 ms, repeatedly, until the CPU-bound fibers finish.
# Lateness is how much later than requested each `sleep` returned, in milliseconds. A sleeper that was not woken while
# the others computed has one wake-up, at the end.
#
# `cpu_seconds` is that of the whole process: it includes the sleepers' wake-ups and the switching. With `sleepers: 0`
# it is the cost of the CPU-bound fibers and of preempting them. It is reported relative to the same work done alone.
class BesideCpuBound
  SLEEPS = { lateness_1ms: 0.001, lateness_10ms: 0.010 }.freeze
  EACH = 2

  def initialize(fibers:, units:, sleepers: EACH)
    @cpu_bound = CpuBoundFibers.new(fibers, units)
    @sleepers = sleepers
    @lateness = SLEEPS.transform_values { [] }
  end

  def measure(contestant)
    GC.start
    cpu = Clock.cpu
    started = Clock.now
    contestant.run do
      start_sleepers unless contestant.alone?
      @cpu_bound.start(contestant)
    end
    { seconds: Clock.now - started, cpu_seconds: Clock.cpu - cpu, operations: @cpu_bound.done, expected: @cpu_bound.all,
      least_share: @cpu_bound.least_share, **@lateness, **percentiles }
  end

  private

  def start_sleepers
    SLEEPS.each { |name, seconds| @sleepers.times { Fiber.schedule { sleep_beside(seconds, @lateness[name]) } } }
  end

  def percentiles
    SLEEPS.keys.product([50, 90, 99, 100]).to_h do |name, percent|
      key = name.to_s.sub("lateness", percent == 100 ? "max" : "p#{percent}")
      [key, Statistics.percentile(@lateness[name].sort, percent)]
    end
  end

  def sleep_beside(seconds, lateness)
    while @cpu_bound.computing?
      before = Clock.now
      sleep(seconds)
      lateness << ((Clock.now - before - seconds) * 1000).round(4)
    end
  end
end
