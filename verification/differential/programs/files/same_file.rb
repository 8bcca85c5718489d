# frozen_string_literal: true

# Tasks that write the same buffered file lose nothing

File.open("file", "w") do |file|
  Array.new(10) { |number| task { 100.times { file.puts("line of #{number}") } } }.each(&:join)
end
say File.read("file").scan(/\d/).tally.sort, File.size("file")
