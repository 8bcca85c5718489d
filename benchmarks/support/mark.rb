# frozen_string_literal: true

# What Heddle is to reach: a figure, at least or at most so much. `ratio` is the ratio to Async in the same rounds, told
# so that more is better whatever is measured; the other figures are in the unit of their name.
#
# Marks stand beside the measured figures in the table and on the page. No benchmark fails by them: on a machine with
# other work to do a figure says little, and a failing one would teach people to look away.
Mark = Data.define(:figure, :bound, :value) do
  def self.at_least(value, figure = :ratio) = new(figure, :>=, value)

  def self.at_most(value, figure) = new(figure, :<=, value)

  def met?(figures)
    reached = figures[figure]
    !reached.nil? && reached.public_send(bound, value)
  end

  def to_s
    "#{"#{figure} " unless figure == :ratio}#{bound == :>= ? "≥" : "≤"} #{value}"
  end
end
