# frozen_string_literal: true

# A TCP server echoes to many clients

server = TCPServer.new("127.0.0.1", 0)
serving = task do
  Array.new(10) { server.accept }.each { |client| task { IO.copy_stream(client, client) && client.close } }
end
clients = Array.new(10) do |number|
  task do
    data = bytes(100_000, number)
    socket = TCPSocket.new("127.0.0.1", server.addr[1])
    sending = task { socket.write(data) && socket.close_write }
    checksum(socket.read) == checksum(data) && sending.join && socket.close.nil?
  end
end
say clients.map(&:value).tally
serving.join
