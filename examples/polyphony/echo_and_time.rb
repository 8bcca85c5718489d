# frozen_string_literal: true

# Echoes its input, and prints the time meanwhile.
#
#   ruby -Ilib examples/polyphony/echo_and_time.rb [seconds between two times]
#
# `STDIN.read` returns what was typed when the input ends (Ctrl-D). The clock continues; Ctrl-C ends the program.

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
