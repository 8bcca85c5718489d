# frozen_string_literal: true

require_relative "../support/back_and_forth"
require_relative "../support/repeating"
require_relative "../support/tally"

# The cost of waking another fiber: two fibers, two `Queue`s, and one message that goes back and forth. Every pop finds
# its queue empty, so each message is one `block`, one `unblock` and a switch. Pinned to one CPU: with two, the result
# for threads depends on where the kernel places them.
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
    tally = Tally.new(2)
    contestant.run do
      Fiber.schedule { ping(there, back, tally) }
      Fiber.schedule do
        pong(there, back) { tally.first_done }
        tally.finished(0)
      end
    end
    tally.result(@round_trips)
  end

  def bare
    tally = Tally.new(1)
    echo = Fiber.new { |message| loop { message = Fiber.yield(message) } }
    tally.first_done
    tally.finished(@round_trips.times.count { |number| echo.resume(number) == number })
    tally.result(@round_trips)
  end
end
