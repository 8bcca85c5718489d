# frozen_string_literal: true

# Both ends of a pair are closed while tasks read both

one, other = UNIXSocket.pair
waiters = [one, other].map { |socket| task { attempt { socket.read(1) } } }
settle
one.close
settle
other.close
say waiters.map(&:value)
