# frozen_string_literal: true

require_relative "../support/repeating"
require_relative "../support/turns"

# A thread pushes, a fiber pops, and pushes back: what it costs when another thread wakes a fiber of a scheduler that
# has nothing else to do and sleeps in the kernel. Each message goes there and back, so that every single one has to
# wake somebody; otherwise the thread would push all it has while the fiber can't run, and nothing would be measured.
#
# An operation is a round trip. Pinned to one CPU, where the kernel has no choice of whom to place where.
class Xthread
  include Repeating

  def initialize(round_trips: 10_000)
    @round_trips = scaled(round_trips)
  end

  def once(contestant)
    there = Queue.new
    back = Queue.new
    turns = Turns.new(1)
    thread = Thread.new { push(there, back, turns) }
    contestant.run do
      Fiber.schedule { pop(there, back) }
    end
    thread.join
    turns.result(@round_trips)
  end

  private

  def push(there, back, turns)
    right = 0
    number = 0
    while number < @round_trips
      there.push(number)
      right += 1 if back.pop == number
      turns.first if number.zero?
      number += 1
    end
    turns.last(right)
  end

  def pop(there, back)
    left = @round_trips
    while left.positive?
      back.push(there.pop)
      left -= 1
    end
  end
end
