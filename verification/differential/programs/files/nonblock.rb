# frozen_string_literal: true

# The nonblocking methods on files and pipes

File.write("file", "text")
File.open("file") do |file|
  say file.read_nonblock(2), file.read_nonblock(10), file.read_nonblock(1, exception: false), attempt {
    file.read_nonblock(1)
  }
end
reader, writer = IO.pipe
say reader.read_nonblock(1, exception: false), attempt { reader.read_nonblock(1) }
say writer.write_nonblock("xy"), reader.read_nonblock(9)
writer.close
say reader.read_nonblock(1, exception: false), attempt { reader.read_nonblock(1) }
