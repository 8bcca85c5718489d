# frozen_string_literal: true

# A TCP server that closes early keeps its connections apart

server = TCPServer.new("127.0.0.1", 0)
port = server.addr[1]
serving = task do
  loop do
    client = server.accept
    task do
      length = client.gets.to_i
      client.write(client.read(length).reverse)
    ensure
      client.close
    end
  end
rescue IOError
  :closed
end
clients = Array.new(30) do |number|
  task do
    message = bytes(3000, number)
    socket = TCPSocket.new("127.0.0.1", port)
    socket.write("#{message.bytesize}\n", message)
    (socket.read == message.reverse).tap { socket.close }
  end
end
say clients.map(&:value).tally
server.close
say serving.value
