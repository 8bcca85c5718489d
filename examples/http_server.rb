# frozen_string_literal: true

# A small HTTP/1.1 server with keep-alive.
#
#   ruby -Ilib examples/http_server.rb [port]      port 8080 by default; 0 chooses a free port
#
#   curl http://127.0.0.1:8080/                    answers at once
#   curl http://127.0.0.1:8080/slow                answers after a second, without delaying other clients
#
# Each connection has a fiber, and support/http_connection.rb is written as for a single client. Ctrl-C ends the server.

require "heddle"
require "socket"
require_relative "support/http_connection"

# Seconds that a client may keep a connection open without a request.
IDLE = 15

def answer(request)
  case request.path
  when "/" then [200, "Hello from fiber #{Fiber.current.object_id}\n"]
  when "/slow"
    sleep 1
    [200, "That took a second, and delayed no other client\n"]
  else [404, "There is no #{request.path} here\n"]
  end
end

begin
  Heddle.run do
    TCPServer.open("127.0.0.1", Integer(ARGV.fetch(0, 8080))) do |server|
      puts "Listening on http://127.0.0.1:#{server.addr[1]}/. Ctrl-C ends the server."
      $stdout.flush

      loop do
        client = server.accept
        Fiber.schedule { HttpConnection.new(client, idle: IDLE).serve { |request| answer(request) } }
      end
    end
  end
rescue Interrupt
  puts "Bye."
end
