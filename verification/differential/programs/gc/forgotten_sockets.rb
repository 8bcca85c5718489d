# frozen_string_literal: true

# Numbers of sockets that the collector closed serve new connections

# Within `each` both ends are reachable. ZJIT keeps no temporary value that is not used again: in `pair.first.write` the
# collector may close the other end before the write, which then raises EPIPE.
outcomes = Array.new(5) do |round|
  200.times { UNIXSocket.pair.each { |socket| socket.write("forgotten") } }
  GC.start
  message = bytes(5000, round)
  one, other = UNIXSocket.pair
  reader = task { other.read(5000) }
  100.times { UNIXSocket.pair.each { |socket| socket.write("forgotten") } }
  GC.start
  one.write(message)
  (reader.value == message).tap { [one, other].each(&:close) }
end
say outcomes
