# frozen_string_literal: true

# IO#close_write ends the peer's read and leaves the own read waiting

one, other = UNIXSocket.pair
waiter = task { attempt { one.read(5) } }
settle
one.write("bye")
one.close_write
say other.read, attempt { one.write("x") }
other.write("later")
say waiter.value
