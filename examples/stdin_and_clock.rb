# frozen_string_literal: true

# Echoes what you type, and prints the time each second meanwhile.
#
#   ruby -Ilib examples/stdin_and_clock.rb [seconds between two times]
#
# The clock continues while `gets` waits for you: waiting for STDIN blocks only the fiber that waits. Ctrl-D (the end of
# the input) or Ctrl-C ends the program.

require "heddle"

interval = Float(ARGV.fetch(0, 1))
$stdout.sync = true

begin
  Heddle.run do
    clock = Fiber.schedule do
      loop do
        puts Time.now.strftime("%H:%M:%S")
        sleep interval
      end
    end

    while (line = $stdin.gets)
      puts "You said: #{line}"
    end

    clock.kill
  end
rescue Interrupt
  # Ctrl-C is the normal end.
end

puts "Bye."
