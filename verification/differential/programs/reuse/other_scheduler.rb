# frozen_string_literal: true

# A connection that another scheduler's fiber opens under a closed one's number gets its own bytes

outcomes = Array.new(10) do |round|
  one, other = UNIXSocket.pair
  waiter = task { error_of { other.read(100) } }
  one.write("p" * 50)
  settle
  other.close
  message = bytes(500, round)
  fine = elsewhere do
    left, right = UNIXSocket.pair
    reader = task { right.read(500) }
    settle
    left.write(message)
    (reader.value == message).tap { [left, right].each(&:close) }
  end.value
  one.close
  [fine, waiter.value]
end
say outcomes.tally
