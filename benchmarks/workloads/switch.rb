# frozen_string_literal: true

require_relative "../support/repeating"
require_relative "../support/turns"

# What it costs to hand the turn on: fibers that do nothing but `sleep(0)`, which every scheduler takes as 'let the
# others go first'. With 2 fibers that is the bare price of a switch and of the hook; with 1,000 fibers their stacks and
# their places in the queues no longer fit into the nearest caches.
#
# The bare limit is a ring of as many fibers that transfer to each other and to nobody else: no queue, no hook.
class Switch
  include Repeating

  def initialize(fibers:, operations: 200_000)
    @fibers = fibers
    @each = [scaled(operations) / fibers, 2].max
  end

  def once(contestant)
    turns = Turns.new(@fibers)
    contestant.run do
      @fibers.times { Fiber.schedule { pass(turns) } }
      turns.go
    end
    turns.result(@fibers * @each)
  end

  def bare
    turns = Turns.new(@fibers)
    ring = []
    @fibers.times { |place| ring << Fiber.new { hand_on(ring, place, turns) } }
    ring.first.transfer
    turns.result(@fibers * @each)
  end

  private

  def pass(turns)
    turns.ready
    sleep(0)
    turns.first
    left = @each - 1
    while left.positive?
      sleep(0)
      left -= 1
    end
    turns.last(@each)
  end

  def hand_on(ring, place, turns)
    successor = ring[(place + 1) % @fibers]
    turns.first
    left = @each
    while left.positive?
      successor.transfer
      left -= 1
    end
    turns.last(@each)
    # Whoever ends gives control to the root; all but the last have a successor that is still to end.
    successor.transfer unless place == @fibers - 1
  end
end
