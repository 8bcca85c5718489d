# frozen_string_literal: true

# A write that waits ends with IOError when another thread closes the IO, and the number can be used

one, _other = UNIXSocket.pair
number = one.fileno
waiter = task { attempt { one.write("w" * 8_000_000) } }
pairs = Thread.new do
  settle
  one.close
  retake(number)
end.value
say intact?(pairs), waiter.value
