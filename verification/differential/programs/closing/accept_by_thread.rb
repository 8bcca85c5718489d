# frozen_string_literal: true

# TCPServer#accept ends with IOError when another thread closes the server, and the port is free

address, port = own_address
server = TCPServer.new(address, port)
waiter = task { attempt { server.accept } }
Thread.new { settle && server.close }.join
say waiter.value, attempt { TCPSocket.new(address, port) }[/ECONNREFUSED/]
again = TCPServer.new(address, port)
client = TCPSocket.new(address, port)
again.accept.write("fresh")
say client.readpartial(10)
