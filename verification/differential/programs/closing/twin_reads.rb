# frozen_string_literal: true

# A read through an IO.for_fd ends when that object is closed

reader, writer = IO.pipe
twin = IO.for_fd(reader.fileno, autoclose: false)
waiter = task { attempt { twin.read(2) } }
settle
twin.close
writer.write("ok")
say waiter.value, reader.read_nonblock(2, exception: false)
