# frozen_string_literal: true

# IO#close_read ends a read that waits, and leaves the other direction open

one, other = UNIXSocket.pair
waiter = task { attempt { one.read(10) } }
settle
say attempt { one.close_read }
say waiter.value, attempt { one.write("still") }, other.readpartial(10)
