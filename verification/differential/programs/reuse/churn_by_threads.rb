# frozen_string_literal: true

# Numbers that other threads close serve new connections while tasks read them

outcomes = Array.new(20) do |round|
  one, other = UNIXSocket.pair
  reader = task { error_of { other.read(100) } }
  one.write("p" * 50)
  message = bytes(200, round)
  fine = Thread.new do
    other.close
    left, right = UNIXSocket.pair
    left.write(message)
    (right.read(200) == message).tap { [left, right].each(&:close) }
  end.value
  one.close
  [fine, reader.value]
end
say outcomes.tally
