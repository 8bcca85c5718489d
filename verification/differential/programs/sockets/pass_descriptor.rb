# frozen_string_literal: true

# A descriptor that is passed by a UNIX socket works in the task that waits for it

one, other = UNIXSocket.pair
reader, writer = IO.pipe
waiter = task { other.recv_io(IO, "w").then { |io| io.write("passed") && io.close } }
settle
one.send_io(writer)
writer.close
waiter.join
say reader.read
