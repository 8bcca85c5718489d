# frozen_string_literal: true

require_relative "../support/repeating"
require_relative "../support/turns"

# What it costs to wake another fiber: two fibers, two `Queue`s, and one message that goes back and forth. Every pop
# finds its queue empty, so each message is one `block`, one `unblock` and a switch. Pinned to one CPU: with two, the
# kernel's placement of the threads decides what threads get.
#
# An operation is a round trip. The bare limit is two fibers that transfer a value back and forth.
class QueuePingpong
  include Repeating

  def initialize(round_trips: 50_000)
    @round_trips = scaled(round_trips)
  end

  def once(contestant)
    there = Queue.new
    back = Queue.new
    turns = Turns.new(2)
    contestant.run do
      Fiber.schedule { ping(there, back, turns) }
      Fiber.schedule { pong(there, back, turns) }
    end
    turns.result(@round_trips)
  end

  def bare
    turns = Turns.new(1)
    echo = Fiber.new { |message| loop { message = Fiber.yield(message) } }
    turns.first
    turns.last(@round_trips.times.count { |number| echo.resume(number) == number })
    turns.result(@round_trips)
  end

  private

  def ping(there, back, turns)
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

  def pong(there, back, turns)
    left = @round_trips
    while left.positive?
      back.push(there.pop)
      turns.first if left == @round_trips
      left -= 1
    end
    turns.last(0)
  end
end
