# frozen_string_literal: true

# Reading a listening socket raises Errno::ENOTCONN

server = TCPServer.new("127.0.0.1", 0)
say attempt { server.read(1) }, attempt { server.recv(1) }, attempt { server.write("x") }
say attempt { server.readpartial(1) }
