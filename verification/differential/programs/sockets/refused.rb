# frozen_string_literal: true

# Connections that are refused raise what they do on a thread

address, port = own_address
say attempt { TCPSocket.new(address, port) }.gsub(/\d+/, "n"), attempt { UNIXSocket.new("missing") }
say attempt { Socket.tcp(address, port) }[/ECONNREFUSED/]
say attempt { TCPSocket.new(address, 70_000) }[/\A\w+/]
udp = UDPSocket.new
udp.connect(address, port)
udp.send("x", 0)
say attempt { udp.recv(1) }
