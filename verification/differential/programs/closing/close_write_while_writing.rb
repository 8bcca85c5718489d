# frozen_string_literal: true

# IO#close_write while a task writes ends that write

one, other = UNIXSocket.pair
waiter = task { attempt { one.write("w" * 4_000_000) } }
settle
one.close_write
say other.read.bytesize < 4_000_000, waiter.value
