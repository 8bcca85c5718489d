# frozen_string_literal: true

# pread and pwrite by tasks leave the position alone

File.open("file", "w+") do |file|
  tasks = Array.new(10) { |number| task { file.pwrite(number.to_s * 10, number * 10) } }
  say tasks.map(&:value), file.pos
  say Array.new(10) { |number| task { file.pread(10, number * 10) } }.map(&:value)
  say attempt { file.pread(1, 1000) }, attempt { file.pread(-1, 0) }, attempt { file.pread(0, 0) }
  say attempt { file.pwrite("x", -1) }
  buffer = +""
  say file.pread(4, 8, buffer), buffer
end
