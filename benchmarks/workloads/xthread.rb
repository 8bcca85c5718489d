# frozen_string_literal: true

require_relative "../support/back_and_forth"
require_relative "../support/repeating"
require_relative "../support/turns"

# A thread pushes, a fiber pops, and pushes back: what it costs when another thread wakes a fiber of a scheduler that
# has nothing else to do and sleeps in the kernel. Each message goes there and back, so that every single one has to
# wake somebody; otherwise the thread would push all it has while the fiber can't run, and nothing would be measured.
#
# An operation is a round trip. Pinned to one CPU, where the kernel has no choice of whom to place where.
class Xthread
  include BackAndForth
  include Repeating

  def initialize(round_trips: 10_000)
    @round_trips = scaled(round_trips)
  end

  def once(contestant)
    there = Queue.new
    back = Queue.new
    turns = Turns.new(1)
    thread = Thread.new { ping(there, back, turns) }
    contestant.run do
      Fiber.schedule { pong(there, back) }
    end
    thread.join
    turns.result(@round_trips)
  end
end
