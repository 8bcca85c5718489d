# frozen_string_literal: true

# Echoes its input, and tells the time meanwhile.
#
#   ruby -Ilib examples/polyphony/echo_and_time.rb [seconds between two times]
#
# `STDIN.read` gives what was typed when the input ends (Ctrl-D). The clock goes on; Ctrl-C ends it.

require "heddle/core_ext"

interval = Float(ARGV.fetch(0, 1))
$stdout.sync = true

echo_printer = spin do
  loop do
    msg = $stdin.read
    break if msg.empty?

    puts msg
  end
end

time_printer = spin do
  loop do
    sleep interval
    puts "Time: #{Time.now}"
  end
end

Fiber.await(echo_printer, time_printer)
