# frozen_string_literal: true

# A megabyte goes through a program while tasks read and write

data = bytes(1_000_000, 5)
io = IO.popen("cat", "r+b")
writer = task { io.write(data).tap { io.close_write } }
say checksum(io.read) == checksum(data), writer.value
io.close
