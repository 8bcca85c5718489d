# frozen_string_literal: true

# IO.select tells of a connection to accept, and of the end of a stream

server = TCPServer.new("127.0.0.1", 0)
waiter = task { IO.select([server], nil, nil, 20)&.first == [server] }
settle
client = TCPSocket.new("127.0.0.1", server.addr[1])
say waiter.value
accepted = server.accept
waiter = task { IO.select([client], nil, nil, 20)&.first == [client] && client.read }
settle
accepted.close
say waiter.value
