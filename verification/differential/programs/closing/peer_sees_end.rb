# frozen_string_literal: true

# The peer reads the end at once when a socket is closed while a task reads it

one, other = UNIXSocket.pair
waiter = task { attempt { other.read(1) } }
settle
other.close
say Timeout.timeout(20) { one.read }, waiter.value
