# frozen_string_literal: true

# Several tasks accept from one server, and each connection has one

server = TCPServer.new("127.0.0.1", 0)
accepting = Array.new(4) { task { server.accept.then { |client| client.write("served") && client.close } } }
settle
say Array.new(4) { task { TCPSocket.new("127.0.0.1", server.addr[1]).read } }.map(&:value)
say accepting.map { |one| one.join.alive? }
