# frozen_string_literal: true

# An IO may be named twice, for reading and for writing

one, other = UNIXSocket.pair
other.write("x")
say IO.select([one, one], [one], [one], 1).map(&:size)
