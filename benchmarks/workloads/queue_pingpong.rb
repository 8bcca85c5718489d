# frozen_string_literal: true

require_relative "../support/back_and_forth"
require_relative "../support/repeating"
require_relative "../support/turns"

# What it costs to wake another fiber: two fibers, two `Queue`s, and one message that goes back and forth. Every pop
# finds its queue empty, so each message is one `block`, one `unblock` and a switch. Pinned to one CPU: with two, the
# kernel's placement of the threads decides what threads get.
#
# An operation is a round trip. The bare limit is two fibers that transfer a value back and forth.
class QueuePingpong
  include BackAndForth
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
      Fiber.schedule do
        pong(there, back) { turns.first }
        turns.last(0)
      end
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
end
