# frozen_string_literal: true

require "socket"
require_relative "../support/repeating"
require_relative "../support/work"

# How evenly CPU-bound fibers share the CPU time that constant I/O leaves to them. They compute for a fixed time, beside
# pairs of fibers that send a byte back and forth without a pause. So at any time a woken fiber goes before them.
#
# A fiber's share is its work relative to the mean of all CPU-bound fibers: 1 is fair. `cpu_bound_share` is the part of
# the process's CPU time that all of them had, `rate` the round trips per second of the pairs.
class SharesBesideEchoes
  # Long enough for each CPU-bound fiber to have about twenty time slices, so that the last slice is 5 % of its share.
  SECONDS = 8 * Repeating::SCALE
  PAIRS = 4

  def initialize(fibers:, unit_ms:)
    @units = Array.new(fibers, 0)
    @unit = unit_ms / 1000.0
    @computing = fibers
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
      cpu_bound_share: @units.sum * @unit / (Clock.cpu - cpu), **shares }
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
