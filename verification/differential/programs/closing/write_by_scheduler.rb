# frozen_string_literal: true

# A write that waits ends with IOError when a fiber of another scheduler closes the IO

one, _other = UNIXSocket.pair
number = one.fileno
waiter = task { attempt { one.write("w" * 8_000_000) } }
pairs = elsewhere do
  settle
  one.close
  retake(number)
end.value
say intact?(pairs), waiter.value
