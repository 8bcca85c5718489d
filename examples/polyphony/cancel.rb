# frozen_string_literal: true

# Waits for a line with a time limit; an exception reports that the limit has passed.
#
#   ruby -Ilib examples/polyphony/cancel.rb [seconds]

require "heddle/core_ext"

def gets_with_timeout(io, timeout)
  cancel_after(timeout) { io.gets }
rescue Polyphony::Cancel
  "gets was cancelled!"
end

seconds = Float(ARGV.fetch(0, 3))
puts "You have #{seconds} s to type a line."
puts gets_with_timeout($stdin, seconds)
