# frozen_string_literal: true

# Numbers of sockets whose reads timed out serve new connections

tallies = Array.new(6) do |number|
  task do
    Array.new(5) do |round|
      one, other = UNIXSocket.pair
      one.write("p" * 50)
      outcome = error_of { Timeout.timeout(0.005) { other.read(100) } }
      other.close
      one.close
      message = bytes(200, (number * 1000) + round)
      left, right = UNIXSocket.pair
      left.write(message)
      fine = right.read(200) == message
      [left, right].each(&:close)
      [fine, outcome]
    end
  end
end
say tallies.flat_map(&:value).tally
