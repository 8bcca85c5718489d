# frozen_string_literal: true

# accept_nonblock and connect_nonblock tell what to wait for

server = TCPServer.new("127.0.0.1", 0)
say server.accept_nonblock(exception: false), attempt { server.accept_nonblock }
client = Socket.new(:INET, :STREAM)
say [:wait_writable, 0].include?(client.connect_nonblock(server.local_address, exception: false))
say client.wait_writable(20) == client, server.wait_readable(20) == server, server.accept_nonblock.class
say attempt { client.connect_nonblock(server.local_address) }
