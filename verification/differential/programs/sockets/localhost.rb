# frozen_string_literal: true

# TCPSocket.new of a name with two addresses falls back to the one that listens

server = TCPServer.new("127.0.0.1", 0)
sleeper = task { 20.times { sleep(0.002) } && :slept }
say attempt { TCPSocket.new("localhost", server.addr[1]).peeraddr[3] }
say attempt { Socket.tcp("localhost", server.addr[1]).remote_address.ip_address }
say attempt { TCPSocket.new("localhost", server.addr[1], connect_timeout: 20).close }, sleeper.value
