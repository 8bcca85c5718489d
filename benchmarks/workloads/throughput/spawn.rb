# frozen_string_literal: true

require_relative "../support/repeating"
require_relative "../support/tally"

# The cost of a fiber that is scheduled, does nothing and ends: `Fiber.schedule { }`, repeatedly. Most of it is Ruby's:
# allocating and freeing a stack, and garbage collection.
#
# The bare limit is `Fiber.new { }.resume`, which no scheduler can exceed.
class Spawn
  include Repeating

  def initialize(fibers: 50_000)
    @fibers = scaled(fibers)
  end

  def once(contestant)
    count = 0
    tally = Tally.new(1)
    contestant.run do
      @fibers.times { Fiber.schedule { count += 1 } }
    end
    tally.first_done
    tally.finished(count)
    tally.result(@fibers)
  end

  def bare
    count = 0
    tally = Tally.new(1)
    @fibers.times { Fiber.new { count += 1 }.resume }
    tally.first_done
    tally.finished(count)
    tally.result(@fibers)
  end
end
