# frozen_string_literal: true

# IO#wait_readable ends with IOError when the IO is closed

reader, _writer = IO.pipe
waiters = [task { attempt { reader.wait_readable } }, task { attempt { reader.wait_readable(5) } }]
settle
reader.close
say waiters.map(&:value)
