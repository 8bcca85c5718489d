# frozen_string_literal: true

# A buffered writer's bytes come with flush and with close

reader, writer = IO.pipe
writer.sync = false
writer.write("held")
say reader.read_nonblock(4, exception: false)
waiter = task { reader.readpartial(10) }
settle
writer.flush
say waiter.value, writer.write("last"), writer.close, reader.read, attempt { writer.fsync }
