# frozen_string_literal: true

# A write of 8 MB that is closed half-way writes nothing to the connection that takes the number

one, other = UNIXSocket.pair
number = one.fileno
waiter = task { attempt { one.write("w" * 8_000_000) } }
settle
one.close
pairs = retake(number)
settle
say intact?(pairs), waiter.value, other.read.bytesize < 8_000_000
