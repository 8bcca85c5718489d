# frozen_string_literal: true

# A client that writes to a server which has closed learns of it

server = TCPServer.new("127.0.0.1", 0)
client = TCPSocket.new("127.0.0.1", server.addr[1])
server.accept.close
settle
say client.read
say error_of { loop { client.write("x" * 1000) && sleep(0.002) } }.to_s[/EPIPE|ECONNRESET/].class
