# frozen_string_literal: true

# Tasks that open, close and reuse sockets receive their own bytes

tallies = Array.new(8) do |number|
  task do
    Array.new(10) do |round|
      message = bytes(5000, (number * 1000) + round)
      one, other = UNIXSocket.pair
      sender = task { one.write(message).tap { one.close } }
      received = other.read
      other.close
      [received == message, sender.value]
    end
  end
end
say tallies.flat_map(&:value).tally
