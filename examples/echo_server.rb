# frozen_string_literal: true

# An echo server: it sends back each line that a client sends.
#
#   ruby -Ilib examples/echo_server.rb [port]      port 7777 by default; 0 chooses a free port
#
# In other terminals, any number of them:
#
#   nc 127.0.0.1 7777
#
# One thread serves all clients concurrently. Each client has a fiber; while its `gets` waits for a line, other fibers
# run. Ctrl-C ends the server.

require "heddle"
require "socket"

port = Integer(ARGV.fetch(0, 7777))

def serve(client)
  while (line = client.gets)
    client.write(line)
  end
rescue SystemCallError
  # The client has closed the connection.
ensure
  client.close
end

begin
  Heddle.run do
    TCPServer.open("127.0.0.1", port) do |server|
      puts "Echoing on 127.0.0.1:#{server.addr[1]}. Ctrl-C ends the server."
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
