# frozen_string_literal: true

# Closing a duplicate leaves a read of the original waiting

reader, writer = IO.pipe
waiter = task { attempt { reader.read(2) } }
settle
reader.dup.close
settle
writer.write("ok")
say waiter.value
