# frozen_string_literal: true

# Timeout.timeout ends Net::HTTP.get of a server that never answers

require "net/http"
server = TCPServer.new("127.0.0.1", 0)
say attempt { Timeout.timeout(0.1) { Net::HTTP.get(URI("http://127.0.0.1:#{server.addr[1]}/")) } }
