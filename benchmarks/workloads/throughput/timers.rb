# frozen_string_literal: true

require_relative "../../run/clock"
require_relative "../../run/left_out"
require_relative "../support/repeating"
require_relative "../../report/statistics"

# 10,000 fibers sleep 1 to 100 ms again and again, which asks for half a million wake-ups per second: more than there is
# time for, so the rate tells what a timer costs, and the lateness who pays. The ideal rate is what these sleepers would
# do if nothing cost anything; `share_of_ideal` is what was reached of it.
#
# Lateness is how much later than asked for `sleep` returned, of every single wake-up.
class Timers
  MILLISECONDS = (1..100)

  def initialize(sleepers: 10_000, seconds: 3)
    @sleepers = sleepers
    @seconds = seconds * Repeating::SCALE
    @lateness = []
    @woken = Array.new(sleepers, 0)
  end

  def measure(contestant)
    cpu = Clock.cpu
    contestant.run do
      @sleepers.times { |number| Fiber.schedule { sleep_again_and_again(number) } }
      # Counted from here on: to schedule them takes a good part of a second.
      @before = @lateness.size
      @deadline = Clock.now + @seconds
    end
    cpu = Clock.cpu - cpu
    result.merge(cpu_seconds: cpu)
  rescue ThreadError => e
    raise LeftOut, "#{@sleepers} sleepers: #{e.message}"
  end

  private

  def seconds_of(number) = (MILLISECONDS.begin + (number % MILLISECONDS.size)) / 1000.0

  def sleep_again_and_again(number)
    seconds = seconds_of(number)
    before = Clock.now
    until @deadline && before >= @deadline
      sleep(seconds)
      now = Clock.now
      break if @deadline && now >= @deadline

      @lateness << (now - before - seconds)
      @woken[number] += 1
      before = now
    end
  end

  def result
    operations = @lateness.size - @before
    { operations:, expected: @woken.sum - @before, fibers: @sleepers, ended: @sleepers, seconds: @seconds,
      rate: operations / @seconds, starved: @woken.count(&:zero?),
      share_of_ideal: operations / @seconds / ideal_rate,
      p99_ms: Statistics.percentile(@lateness.drop(@before).sort, 99).to_f * 1000 }
  end

  def ideal_rate = @sleepers.times.sum { |number| 1 / seconds_of(number) }
end
