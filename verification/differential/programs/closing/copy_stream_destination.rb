# frozen_string_literal: true

# IO.copy_stream ends with IOError when its destination is closed

source, feed = IO.pipe
_sink, target = IO.pipe
loop { break if target.write_nonblock("x" * 1000, exception: false) == :wait_writable }
waiter = task { attempt { IO.copy_stream(source, target) } }
feed.write("some")
settle
target.close
feed.close
say waiter.value
