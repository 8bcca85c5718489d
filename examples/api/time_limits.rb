# frozen_string_literal: true

# Time limits: an error, a value instead, and a limit that is moved while the block runs.
#
#   ruby -Ilib examples/api/time_limits.rb [seconds of silence that end the reading]

require "heddle"
require "socket"

silence = Float(ARGV.fetch(0, 0.2))

Heddle.run do
  # A limit that raises. A library that rescues StandardError, and tries again, does not catch it by mistake.
  begin
    Heddle.cancel_after(0.1) do
      sleep
    rescue StandardError
      retry
    end
  rescue Heddle::TimeoutError => e
    puts e.message
  end

  # A limit that returns.
  puts Heddle.move_on_after(0.1, value: "no answer") { Queue.new.pop }

  # A limit for each line instead of for all of them.
  client, server = UNIXSocket.pair
  Heddle.spin(background: true) do
    5.times { |number| sleep(0.06) && server.puts("line #{number}") }
    sleep # The sixth line never comes.
  end
  Heddle.move_on_after(silence) do |deadline|
    while (line = client.gets)
      deadline.reset
      puts line
    end
  end
  puts "silent for #{silence} s"

  # What must not be broken off.
  saved = nil
  Heddle.move_on_after(0.01) { Heddle.shield { sleep(0.05) && (saved = "saved") } }
  puts saved
end
