# frozen_string_literal: true

require_relative "../support/repeating"
require_relative "../support/tally"

# The cost of a switch: fibers that do nothing but `sleep(0)`, by which a fiber yields to the other runnable fibers.
# With 2 fibers this is the cost of the switch and of the hook. With 1,000 fibers, their stacks and records no longer
# fit into the first cache levels.
#
# The bare limit is a ring of as many fibers that transfer to their successor: no queue, no hook.
class Switch
  include Repeating

  def initialize(fibers:, operations: 200_000)
    @fibers = fibers
    @each = [scaled(operations) / fibers, 2].max
  end

  def once(contestant)
    tally = Tally.new(@fibers)
    contestant.run do
      @fibers.times { Fiber.schedule { pass(tally) } }
      tally.start
    end
    tally.result(@fibers * @each)
  end

  def bare
    tally = Tally.new(@fibers)
    ring = []
    @fibers.times { |place| ring << Fiber.new { hand_on(ring, place, tally) } }
    ring.first.transfer
    tally.result(@fibers * @each)
  end

  private

  def pass(tally)
    tally.wait_for_start
    sleep(0)
    tally.first_done
    left = @each - 1
    while left.positive?
      sleep(0)
      left -= 1
    end
    tally.finished(@each)
  end

  def hand_on(ring, place, tally)
    successor = ring[(place + 1) % @fibers]
    tally.first_done
    left = @each
    while left.positive?
      successor.transfer
      left -= 1
    end
    tally.finished(@each)
    # A fiber that ends returns control to the root fiber, so each fiber but the last lets its successor end first.
    successor.transfer unless place == @fibers - 1
  end
end
