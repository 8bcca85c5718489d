# frozen_string_literal: true

# Reading, writing, seeking and appending by tasks

File.write("file", "0123456789")
outcomes = Array.new(5) do |number|
  task { File.open("file") { |file| file.seek(number * 2) && [file.read(2), file.pos, file.eof?] } }
end
say outcomes.map(&:value)
File.open("file", "a") { |file| file.write("tail") && say(file.pos) }
say File.read("file"), File.size("file"), IO.binread("file", 3, 2), IO.readlines("file")
