# frozen_string_literal: true

# BasicSocket#shutdown ends a read that waits with the end of the stream

one, other = UNIXSocket.pair
waiter = task { attempt { one.read(10) } }
settle
one.shutdown(:RD)
say waiter.value, attempt { other.write("x") }
