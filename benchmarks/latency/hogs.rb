# frozen_string_literal: true

require_relative "work"

# The hogs of a latency benchmark: so many fibers that share the work out evenly and do it without ever waiting. Knows
# how many still compute, and how even their shares were when the first of them was through: `least_share` is what the
# one that had got least had done by then, relative to its fair share.
class Hogs
  attr_reader :done

  def initialize(count, units)
    @units = Array.new(count) { |number| (units / count) + (number < units % count ? 1 : 0) }
    @progress = Array.new(count, 0)
    @computing = count
    @done = 0
  end

  def start(contestant)
    @units.each_index { |number| contestant.compute { compute(number) } }
  end

  def computing? = @computing.positive?

  def all = @units.sum

  # In none of the short slices of the last units lies a scheduler's fault: they are too coarse for 64 hogs.
  attr_reader :least_share

  private

  def compute(number)
    @units[number].times do
      Work.unit
      @progress[number] += 1
    end
    @least_share ||= shares.min
    @done += @units[number]
    @computing -= 1
  end

  def shares = @progress.zip(@units).map { |progress, units| progress / units.to_f }
end
