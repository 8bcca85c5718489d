# frozen_string_literal: true

# Closing the original leaves a read of the duplicate waiting

reader, writer = IO.pipe
copy = reader.dup
waiter = task { attempt { copy.read(2) } }
settle
reader.close
settle
writer.write("ok")
say waiter.value
