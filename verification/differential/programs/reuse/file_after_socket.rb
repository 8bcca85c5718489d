# frozen_string_literal: true

# A file that takes the number of a closed socket has only what was written to it

outcomes = Array.new(10) do |round|
  one, other = UNIXSocket.pair
  writer = task { error_of { one.write("w" * 2_000_000) } }
  settle
  one.close
  File.open("file#{round}", "w") { |file| file.write("mine") && settle }
  other.close
  [File.read("file#{round}"), writer.value]
end
say outcomes.tally
