# frozen_string_literal: true

# Waits for a line with a time limit.
#
#   ruby -Ilib examples/polyphony/move_on.rb [seconds]

require "heddle/core_ext"

def gets_with_timeout(io, timeout)
  move_on_after(timeout) { io.gets }
end

seconds = Float(ARGV.fetch(0, 3))
puts "You have #{seconds} s to type a line."
line = gets_with_timeout($stdin, seconds)
puts line ? "You said: #{line}" : "You said nothing."
