# frozen_string_literal: true

# A large file that tasks write and read in parts is whole

data = bytes(2_000_000, 3)
File.open("file", "w+b") do |file|
  writers = Array.new(20) { |number| task { file.pwrite(data[number * 100_000, 100_000], number * 100_000) } }
  say writers.sum(&:value), checksum(file.read) == checksum(data)
end
say File.open("file", "rb") { |file| Array.new(20) { file.read(100_000) }.join == data }
