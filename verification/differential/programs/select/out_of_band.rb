# frozen_string_literal: true

# Urgent data is told by IO.select's third list

server = TCPServer.new("127.0.0.1", 0)
client = TCPSocket.new("127.0.0.1", server.addr[1])
accepted = server.accept
waiter = task { IO.select(nil, nil, [accepted], 20)&.map(&:size) }
settle
client.send("!", Socket::MSG_OOB)
say waiter.value, accepted.recv(1, Socket::MSG_OOB)
