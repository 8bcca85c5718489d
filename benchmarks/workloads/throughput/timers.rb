# frozen_string_literal: true

require_relative "../../run/clock"
require_relative "../../run/left_out"
require_relative "../support/repeating"
require_relative "../../report/statistics"

# 10,000 fibers sleep 1 to 100 ms repeatedly, which requests half a million wake-ups per second: more than the CPU has
# time for, so the rate shows the cost of a timer. The ideal rate is that of these sleepers if a wake-up cost nothing;
# `share_of_ideal` is the part of it that was reached.
#
# Lateness is how much later than requested each `sleep` returned.
#
# Every sleep that began must return, and every sleeper must end. Sleeps are counted before the call and wake-ups after
# it, so a lost wake-up makes the sums differ.
class Timers
  MILLISECONDS = (1..100)

  def initialize(sleepers: 10_000, seconds: 3)
    @sleepers = sleepers
    @seconds = seconds * Repeating::SCALE
    @lateness = []
    @begun = Array.new(sleepers, 0)
    @ended = @woken_after_deadline = 0
  end

  def measure(contestant)
    cpu = Clock.cpu
    contestant.run do
      @sleepers.times { |number| Fiber.schedule { sleep_until_deadline(number) } }
      # The rate counts from here on: scheduling them takes a good part of a second.
      @before = @lateness.size
      @deadline = Clock.now + @seconds
    end
    cpu = Clock.cpu - cpu
    numbers = result
    numbers.merge(cpu_seconds: cpu, cpu_us: cpu / numbers[:operations] * 1e6)
  rescue ThreadError => e
    raise LeftOut, "#{@sleepers} sleepers: #{e.message}"
  end

  private

  def seconds_of(number) = (MILLISECONDS.begin + (number % MILLISECONDS.size)) / 1000.0

  def sleep_until_deadline(number)
    seconds = seconds_of(number)
    before = Clock.now
    until @deadline && before >= @deadline
      @begun[number] += 1
      sleep(seconds)
      now = Clock.now
      break @woken_after_deadline += 1 if @deadline && now >= @deadline

      @lateness << (now - before - seconds)
      before = now
    end
    @ended += 1
  end

  def result
    rate = (@lateness.size - @before) / @seconds
    { operations: @lateness.size + @woken_after_deadline, expected: @begun.sum, fibers: @sleepers, ended: @ended,
      seconds: @seconds, rate:, starved:, share_of_ideal: rate / ideal_rate,
      p99_ms: Statistics.percentile(@lateness.drop(@before).sort, 99).to_f * 1000 }
  end

  # A sleeper is starved if no sleep, or only the first one, began: then it had no wake-up before the deadline.
  def starved = @begun.count { |sleeps| sleeps <= 1 }

  def ideal_rate = @sleepers.times.sum { |number| 1 / seconds_of(number) }
end
