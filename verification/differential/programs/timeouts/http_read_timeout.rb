# frozen_string_literal: true

# Net::HTTP's read_timeout raises Net::ReadTimeout

require "net/http"
server = TCPServer.new("127.0.0.1", 0)
http = Net::HTTP.new("127.0.0.1", server.addr[1])
http.read_timeout = 0.05
http.max_retries = 0
say attempt { http.get("/") }[/\A[\w:]+/]
