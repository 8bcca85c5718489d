# frozen_string_literal: true

# Connections that are refused raise what they do on a thread

port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
say attempt { TCPSocket.new("127.0.0.1", port) }.gsub(/\d+/, "n"), attempt { UNIXSocket.new("missing") }
say attempt { Socket.tcp("127.0.0.1", port) }[/ECONNREFUSED/]
say attempt { TCPSocket.new("127.0.0.1", 70_000) }[/\A\w+/]
udp = UDPSocket.new
udp.connect("127.0.0.1", port)
udp.send("x", 0)
say attempt { udp.recv(1) }
