# frozen_string_literal: true

# Closing an IO.for_fd with autoclose false leaves the reader alone

reader, writer = IO.pipe
waiter = task { attempt { reader.read(2) } }
settle
twin = IO.for_fd(reader.fileno, autoclose: false)
twin.close
settle
writer.write("ok")
say waiter.value
