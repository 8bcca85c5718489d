# frozen_string_literal: true

# A readpartial loop gets nothing from the connection that takes the closed one's number

one, other = UNIXSocket.pair
number = other.fileno
seen = +""
waiter = task { attempt { loop { seen << other.readpartial(10) } } }
3.times do |round|
  one.write("abc")
  sleep(0.001) until seen.size == 3 * (round + 1)
end
settle
other.close
pairs = retake(number)
say intact?(pairs), waiter.value, seen
