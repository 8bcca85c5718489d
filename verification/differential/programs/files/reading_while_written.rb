# frozen_string_literal: true

# A task reads what another one is writing

File.write("file", "")
writer = task { 5.times { |number| File.write("file", "part #{number}\n", mode: "a") && sleep(0.005) } }
lines = []
File.open("file") do |file|
  lines << file.gets until lines.compact.size == 5 || sleep(0.001).nil?
end
writer.join
say lines.compact
