# frozen_string_literal: true

# IO#syswrite that waits ends with IOError when the IO is closed

_reader, writer = IO.pipe
loop { break if writer.write_nonblock("x" * 1000, exception: false) == :wait_writable }
waiter = task { attempt { writer.syswrite("y" * 10_000) } }
settle
writer.close
say waiter.value
