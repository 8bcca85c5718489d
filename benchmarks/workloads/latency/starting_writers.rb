# frozen_string_literal: true

require "socket"
require_relative "../../run/clock"

# A fiber starts writers in a loop. Each sends to itself through a pair of sockets, which always succeeds at once, until
# all have begun. A scheduler that lets every writer run before it returns to the loop needs a time that grows with the
# square of their number.
class StartingWriters
  MESSAGE = "x" * 512
  SOON = 0.5
  LIMIT = 20

  def initialize(writers:)
    @writers = writers
    @begun = []
  end

  def measure(contestant)
    pairs = Array.new(@writers) { UNIXSocket.pair }
    @started = Clock.now
    contestant.run { pairs.each { |from, to| Fiber.schedule { write(from, to) } } }
    soon = @begun.count { |time| time < SOON }
    { operations: @begun.size, expected: @writers, last_begun_ms: @begun.max * 1000, begun_in_half_a_second: soon }
  end

  private

  def write(from, to)
    @begun << (Clock.now - @started)
    until @begun.size == @writers || Clock.now - @started > LIMIT
      from.write(MESSAGE)
      to.readpartial(MESSAGE.size)
    end
  end
end
