# frozen_string_literal: true

# A flush that waits ends with IOError when the IO is closed

reader, writer = IO.pipe
writer.sync = false
loop { break if writer.write_nonblock("x" * 1000, exception: false) == :wait_writable }
writer.write("buffered")
waiter = task { attempt { writer.flush } }
settle
closer = task { attempt { writer.close } }
settle
reader.close
say waiter.value, closer.value.to_s[/EPIPE|IOError/], writer.closed?
