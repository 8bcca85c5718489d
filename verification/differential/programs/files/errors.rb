# frozen_string_literal: true

# What cannot be opened, read or written raises what it does on a thread

say attempt { File.open("missing") }, attempt { File.open("/proc/self/missing", "w") { nil } }
say attempt { File.read("/") }
File.open("file", "w") { |file| say attempt { file.read } }
File.open("file") { |file| say attempt { file.write("x") } }
say attempt { File.open("file", File::CREAT | File::EXCL | File::WRONLY) }
say attempt { File.open("/dev/full", "w") { |io| io.syswrite("x") } }
say attempt { Dir.children("missing") }, attempt { File.open("file/below") }
