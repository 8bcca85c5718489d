# frozen_string_literal: true

# TCPServer#accept ends with IOError when another task closes the server

server = TCPServer.new("127.0.0.1", 0)
waiter = task { attempt { server.accept } }
settle
server.close
say waiter.value
