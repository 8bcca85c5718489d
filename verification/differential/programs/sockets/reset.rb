# frozen_string_literal: true

# A connection that is reset raises Errno::ECONNRESET in the task that reads

server = TCPServer.new("127.0.0.1", 0)
client = TCPSocket.new("127.0.0.1", server.addr[1])
accepted = server.accept
waiter = task { attempt { client.read(1) } }
settle
accepted.setsockopt(Socket::Option.linger(true, 0))
accepted.close
say waiter.value
