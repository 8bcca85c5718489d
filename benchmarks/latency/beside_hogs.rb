# frozen_string_literal: true

require_relative "../support/statistics"
require_relative "hogs"

# Sleepers beside fibers that compute: two that sleep 1 ms and two that sleep 10 ms, again and again, until the hogs are
# through. Their lateness is how much later than asked for `sleep` returned, in milliseconds, of every wake-up. A
# sleeper that was not woken at all while others computed counts with the one wake-up that it had in the end.
#
# `cpu_seconds` is the whole process's, the sleepers' wake-ups and the switching included; with `sleepers: 0` it is what
# the hogs and whoever preempts them cost. It is told relative to the same work done plainly, with nobody beside.
class BesideHogs
  SLEEPS = { lateness_1ms: 0.001, lateness_10ms: 0.010 }.freeze
  EACH = 2

  def initialize(hogs:, units:, sleepers: EACH)
    @hogs = Hogs.new(hogs, units)
    @sleepers = sleepers
    @lateness = SLEEPS.transform_values { [] }
  end

  def measure(contestant)
    GC.start
    cpu = Clock.cpu
    started = Clock.now
    contestant.run do
      start_sleepers unless contestant.alone?
      @hogs.start(contestant)
    end
    { seconds: Clock.now - started, cpu_seconds: Clock.cpu - cpu, operations: @hogs.done, expected: @hogs.all,
      least_share: @hogs.least_share, **@lateness, **percentiles }
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
    while @hogs.computing?
      before = Clock.now
      sleep(seconds)
      lateness << ((Clock.now - before - seconds) * 1000).round(4)
    end
  end
end
