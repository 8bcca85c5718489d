# frozen_string_literal: true

require_relative "../support/repeating"
require_relative "../support/turns"

# What a fiber costs that is scheduled, does nothing, and ends: `Fiber.schedule { }`, again and again. Most of it is
# Ruby's own, a stack to be had and given back, and the garbage of it.
#
# The bare limit is `Fiber.new { }.resume`. Rates of more than that nobody can reach.
class Spawn
  include Repeating

  def initialize(fibers: 50_000)
    @fibers = scaled(fibers)
  end

  def once(contestant)
    count = 0
    turns = Turns.new(1)
    contestant.run do
      @fibers.times { Fiber.schedule { count += 1 } }
    end
    turns.first
    turns.last(count)
    turns.result(@fibers)
  end

  def bare
    count = 0
    turns = Turns.new(1)
    @fibers.times { Fiber.new { count += 1 }.resume }
    turns.first
    turns.last(count)
    turns.result(@fibers)
  end
end
