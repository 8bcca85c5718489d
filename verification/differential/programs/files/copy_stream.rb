# frozen_string_literal: true

# IO.copy_stream between files, sockets, pipes and StringIO

require "stringio"
data = bytes(300_000, 1)
File.binwrite("file", data)
one, other = UNIXSocket.pair
sender = task { File.open("file") { |file| IO.copy_stream(file, one) }.tap { one.close } }
target = File.open("copy", "wb")
say IO.copy_stream(other, target), sender.value
target.close
say checksum(File.binread("copy")) == checksum(data)
say IO.copy_stream(StringIO.new("text"), "copy"), IO.copy_stream("copy", StringIO.new)
say IO.copy_stream("file", "copy", 10, 5)
say File.binread("copy") == data[5, 10], attempt { IO.copy_stream("missing", "copy") }
