# frozen_string_literal: true

# TCPServer#accept ends with IOError when another thread closes the server, and the port is free

server = TCPServer.new("127.0.0.1", 0)
port = server.addr[1]
waiter = task { attempt { server.accept } }
Thread.new { settle && server.close }.join
say waiter.value, attempt { TCPSocket.new("127.0.0.1", port) }[/ECONNREFUSED/]
again = TCPServer.new("127.0.0.1", port)
client = TCPSocket.new("127.0.0.1", port)
again.accept.write("fresh")
say client.readpartial(10)
