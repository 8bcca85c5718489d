# frozen_string_literal: true

# IO#wait_writable ends with IOError when the IO is closed

_reader, writer = IO.pipe
loop { break if writer.write_nonblock("x" * 1000, exception: false) == :wait_writable }
waiter = task { attempt { writer.wait_writable } }
settle
writer.close
say waiter.value
