# frozen_string_literal: true

# The nonblocking methods on files and pipes

File.write("file", "text")
File.open("file") { |file| say file.read_nonblock(2), file.read_nonblock(10), file.read_nonblock(1, exception: false), attempt { file.read_nonblock(1) } }
reader, writer = IO.pipe
say reader.read_nonblock(1, exception: false), attempt { reader.read_nonblock(1) }, writer.write_nonblock("xy"), reader.read_nonblock(9)
writer.close
say reader.read_nonblock(1, exception: false), attempt { reader.read_nonblock(1) }
