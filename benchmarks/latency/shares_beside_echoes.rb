# frozen_string_literal: true

require "socket"
require_relative "../support/repeating"
require_relative "work"

# How evenly fibers that compute share what is left to them beside constant I/O: so many hogs compute for a fixed time,
# beside pairs of fibers that send a byte to and fro without a pause, so that at any time somebody is woken who goes
# before them.
#
# A hog's share is what it has done relative to the mean of all hogs: 1 is fair. `hogs_share` is the part of the
# process's CPU time that all of them had, `rate` how many round trips the others made per second.
class SharesBesideEchoes
  # Long enough for each hog to have had some twenty quanta of what is left to it, so that the last of them is 5 %.
  SECONDS = 8 * Repeating::SCALE
  PAIRS = 4

  def initialize(hogs:, unit_ms:)
    @units = Array.new(hogs, 0)
    @unit = unit_ms / 1000.0
    @computing = hogs
    @asked = @answered = 0
  end

  def measure(contestant)
    cpu = Clock.cpu
    contestant.run do
      PAIRS.times { start_echo(*UNIXSocket.pair) }
      @until = Clock.now + SECONDS
      @units.each_index { |number| contestant.compute { compute(number) } }
    end
    { operations: @answered, expected: @asked, rate: @answered / SECONDS,
      hogs_share: @units.sum * @unit / (Clock.cpu - cpu), **shares }
  end

  private

  def shares
    mean = @units.sum / @units.size.to_f
    { least_share: @units.min / mean, greatest_share: @units.max / mean }
  end

  def compute(number)
    while Clock.now < @until
      Work.unit
      @units[number] += 1
    end
    @computing -= 1
  end

  def start_echo(near, far)
    Fiber.schedule do
      ask(near)
      near.close
    end
    Fiber.schedule do
      while (byte = far.read(1))
        far.write(byte)
      end
      far.close
    end
  end

  def ask(socket)
    while @computing.positive?
      @asked += 1
      socket.write("x")
      @answered += 1 if socket.read(1)
    end
  end
end
