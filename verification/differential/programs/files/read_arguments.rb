# frozen_string_literal: true

# IO#read takes and refuses the lengths and buffers that it does on a thread

File.write("file", "abcdef")
File.open("file") do |file|
  buffer = +"old"
  say file.read(0), file.read(2, buffer), buffer, attempt { file.read(-1) }
  say attempt { file.read("2") }, file.read(nil, buffer), buffer
  say file.read, file.read(1), file.read(1, buffer), buffer, attempt { file.readpartial(1) }
  say attempt { file.read(1, "frozen") }
  file.rewind
  say attempt { file.read(1, "frozen") }, file.sysseek(0), attempt { file.sysread(3) }
  say attempt { file.readline }, attempt { file.sysread(1) }
end
