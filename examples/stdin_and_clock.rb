# frozen_string_literal: true

# Echoes what you type, and tells the time each second meanwhile.
#
#   ruby -Ilib examples/stdin_and_clock.rb [seconds between two times]
#
# The clock does not stop while `gets` waits for you: waiting for STDIN is waiting like any other. Ctrl-D (the end of
# the input) or Ctrl-C ends it.

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
  # Asked to stop: nothing went wrong.
end

puts "Bye."
