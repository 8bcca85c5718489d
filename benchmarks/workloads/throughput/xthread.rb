# frozen_string_literal: true

require_relative "../support/back_and_forth"
require_relative "../support/repeating"
require_relative "../support/tally"

# A thread pushes, a fiber pops and pushes back: the cost of waking a fiber from another thread, while its scheduler is
# idle in the kernel. Each message goes there and back, so every message needs a wake-up. Otherwise the thread would
# push all messages while the fiber can't run, and no wake-up would be measured.
#
# An operation is a round trip. Pinned to one CPU, so that the kernel's placement of the threads makes no difference.
class Xthread
  include BackAndForth
  include Repeating

  def initialize(round_trips: 10_000)
    @round_trips = scaled(round_trips)
  end

  def once(contestant)
    there = Queue.new
    back = Queue.new
    tally = Tally.new(1)
    thread = Thread.new { ping(there, back, tally) }
    contestant.run do
      Fiber.schedule { pong(there, back) }
    end
    thread.join
    tally.result(@round_trips)
  end
end
