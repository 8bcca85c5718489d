# frozen_string_literal: true

# Numbers of sockets whose large writes were closed serve new connections

tallies = Array.new(4) do |number|
  task do
    Array.new(5) do |round|
      one, other = UNIXSocket.pair
      writer = task { error_of { one.write("w" * 1_000_000) } }
      settle
      one.close
      message = bytes(200, (number * 1000) + round)
      left, right = UNIXSocket.pair
      left.write(message)
      left.close
      fine = right.read == message
      [other, right].each(&:close)
      [fine, writer.value]
    end
  end
end
say tallies.flat_map(&:value).tally
