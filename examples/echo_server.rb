# frozen_string_literal: true

# An echo server: whatever a client sends comes back, line by line.
#
#   ruby -Ilib examples/echo_server.rb [port]      port 7777 unless told otherwise; 0 takes a free one
#
# In other terminals, any number of them:
#
#   nc 127.0.0.1 7777
#
# All clients are served at the same time by one thread: each has a fiber of its own, and `gets` lets the others go on
# until its client has said something. Ctrl-C ends the server.

require "heddle"
require "socket"

port = Integer(ARGV.fetch(0, 7777))

def serve(client)
  while (line = client.gets)
    client.write(line)
  end
rescue SystemCallError
  # The client went away in the middle. That is its business.
ensure
  client.close
end

begin
  Heddle.run do
    TCPServer.open("127.0.0.1", port) do |server|
      puts "Echoing on 127.0.0.1:#{server.addr[1]}. Ctrl-C ends it."
      $stdout.flush

      loop do
        client = server.accept
        Fiber.schedule { serve(client) }
      end
    end
  end
rescue Interrupt
  puts "Bye."
end
