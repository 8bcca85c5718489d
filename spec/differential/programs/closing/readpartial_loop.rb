# frozen_string_literal: true

# A readpartial loop gets nothing from the connection that takes the closed one's number

one, other = UNIXSocket.pair
number = other.fileno
seen = +""
waiter = task { attempt { loop { seen << other.readpartial(10) } } }
3.times do
  one.write("abc")
  settle
end
other.close
pairs = retake(number)
say intact?(pairs), waiter.value, seen
