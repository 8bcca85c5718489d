# frozen_string_literal: true

# A target for Heddle: the least or the greatest value of a figure. `ratio` is the ratio to Async in the same rounds;
# for it more is better, whatever is measured. The other figures have the unit of their name.
#
# Marks are printed beside the measured figures. No benchmark fails because of a mark: on a busy machine a figure says
# little, and people learn to ignore benchmarks that fail by chance.
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
