# frozen_string_literal: true

# Numbers of sockets that the collector closed serve new connections

outcomes = Array.new(5) do |round|
  200.times { UNIXSocket.pair.first.write("forgotten") }
  GC.start
  message = bytes(5000, round)
  one, other = UNIXSocket.pair
  reader = task { other.read(5000) }
  100.times { UNIXSocket.pair.last.write("forgotten") }
  GC.start
  one.write(message)
  (reader.value == message).tap { [one, other].each(&:close) }
end
say outcomes
