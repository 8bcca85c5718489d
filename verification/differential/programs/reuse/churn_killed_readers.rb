# frozen_string_literal: true

# Numbers of sockets whose readers were killed serve new connections

tallies = Array.new(6) do |number|
  task do
    Array.new(10) do |round|
      one, other = UNIXSocket.pair
      reader = task { other.read(100) }
      one.write("p" * 50)
      settle
      reader.kill
      reader.join
      [one, other].each(&:close)
      message = bytes(200, (number * 1000) + round)
      left, right = UNIXSocket.pair
      left.write(message)
      fine = right.read(200) == message
      [left, right].each(&:close)
      fine
    end
  end
end
say tallies.flat_map(&:value).tally
