# frozen_string_literal: true

# Buffered and unbuffered reads of the same pipe keep the order

reader, writer = IO.pipe
writer.write("line\nrest of it")
say reader.gets, attempt { reader.sysread(4) }, reader.readpartial(4), reader.read_nonblock(3), reader.getc
