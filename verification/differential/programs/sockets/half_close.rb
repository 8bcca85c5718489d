# frozen_string_literal: true

# Each direction of a connection ends by itself

server = TCPServer.new("127.0.0.1", 0)
serving = task do
  client = server.accept
  text = client.read
  client.write(text.reverse)
  client.close
end
socket = TCPSocket.new("127.0.0.1", server.addr[1])
socket.write("question")
socket.close_write
say socket.read, attempt { socket.write("x") }, socket.closed?
serving.join
