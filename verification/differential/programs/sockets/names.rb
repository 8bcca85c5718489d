# frozen_string_literal: true

# Names are resolved in tasks

say Addrinfo.getaddrinfo("localhost", 80, :INET, :STREAM).map(&:ip_address).uniq
say Addrinfo.tcp("127.0.0.1", "http").ip_port
say attempt { Addrinfo.getaddrinfo("127.0.0.1", "no-such-service") }[/\A[\w:]+/]
say IPSocket.getaddress("127.0.0.1")
say attempt { Addrinfo.getaddrinfo("no.such.host.invalid", 80) }[/\A[\w:]+/]
say Socket.getaddrinfo("127.0.0.1", 80, nil, :STREAM).map { |info| info[3] }
