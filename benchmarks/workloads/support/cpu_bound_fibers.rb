# frozen_string_literal: true

require_relative "work"

# The CPU-bound fibers of a latency benchmark: they divide the work evenly among themselves and do it without waiting.
class CpuBoundFibers
  # `least_share` is the progress of the slowest fiber when the first fiber finished, relative to its own work: 1 is
  # fair. With 64 fibers it is coarse, because a fiber has few units of work and a time slice covers several of them.
  attr_reader :done, :least_share

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
