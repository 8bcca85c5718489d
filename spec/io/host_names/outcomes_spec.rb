# frozen_string_literal: true

require "socket"

RSpec.describe "Name resolution in a fiber has the same outcome as on a plain thread:" do
  # Since Ruby 3.4 TCPSocket.new resolves a name twice at the same time, and has the message of the one that fails last.
  def without_message
    yield
  rescue SocketError => e
    raise e.class
  end

  loopback = Socket.getifaddrs.find { |interface| interface.addr&.ip? && interface.addr.ipv4_loopback? }.name
  scoped = "fe80::1%#{loopback}"

  {
    "a named service" => -> { Addrinfo.getaddrinfo("localhost", "http", nil, :STREAM).map(&:inspect) },
    "a named service of an address" => -> { Addrinfo.getaddrinfo("127.0.0.1", "http", nil, :STREAM).map(&:inspect) },
    "a service that does not exist" => -> { Addrinfo.getaddrinfo("localhost", "no such service", nil, :STREAM) },
    "a port number in a String" => -> { Addrinfo.getaddrinfo("localhost", "80").map(&:inspect) },
    "an address in UTF-16" => -> { Addrinfo.getaddrinfo("127.0.0.1".encode("UTF-16LE"), 80).map(&:inspect) },
    "a port number in UTF-16" => -> { Socket.sockaddr_in("80".encode("UTF-16LE"), "127.0.0.1") },
    "a port number that is not valid UTF-8" => -> { Addrinfo.getaddrinfo("127.0.0.1", "80\xff") },
    "a port number that is too large" =>
      -> { Addrinfo.getaddrinfo("localhost", 99_999, :INET, :STREAM).map(&:inspect) },
    "no port" => -> { Addrinfo.getaddrinfo("localhost", nil).map(&:inspect) },
    "IPv4 addresses" => -> { Addrinfo.getaddrinfo("localhost", 80, :INET).map(&:inspect) },
    "a family that an address is not of" => -> { Addrinfo.getaddrinfo("127.0.0.1", 80, :INET6) },
    "a protocol that does not fit" =>
      -> { Addrinfo.getaddrinfo("localhost", 80, nil, :STREAM, Socket::IPPROTO_UDP) },
    "a canonical name" => lambda {
      Addrinfo.getaddrinfo("localhost", 80, :INET, :STREAM, nil, Socket::AI_CANONNAME).map(&:canonname)
    },
    "an IPv4 address for IPv6" => lambda {
      Addrinfo.getaddrinfo("localhost", 80, :INET6, :STREAM, nil, Socket::AI_V4MAPPED | Socket::AI_ALL).map(&:inspect)
    },
    "an address with a scope" => -> { Addrinfo.getaddrinfo(scoped, 80, nil, :STREAM).map(&:inspect) },
    "an address with a scope that does not exist" => -> { Addrinfo.getaddrinfo("fe80::1%nowhere", 80) },
    "Addrinfo.tcp with a named service" => -> { Addrinfo.tcp("localhost", "http").inspect },
    "Addrinfo.udp with a named service" => -> { Addrinfo.udp("localhost", "domain").inspect },
    "Addrinfo.ip with a scope" => -> { Addrinfo.ip(scoped).inspect },
    "Socket.getaddrinfo with a named service" => -> { Socket.getaddrinfo("localhost", "http", nil, :STREAM) },
    "Socket.getaddrinfo with a reverse look-up" =>
      -> { Socket.getaddrinfo("localhost", 80, :INET, :STREAM, nil, nil, true) },
    "IPSocket.getaddress with a scope" => -> { IPSocket.getaddress(scoped) },
    "Socket.sockaddr_in with a named service" => -> { Socket.sockaddr_in("http", "localhost") },
    "Socket.getnameinfo" => -> { Socket.getnameinfo(["AF_INET", 80, "127.0.0.1"]) },
    "Socket.getnameinfo of names" => -> { Socket.getnameinfo(%w[AF_INET http localhost]) },
    "Addrinfo#getnameinfo" => -> { Addrinfo.tcp("127.0.0.1", 80).getnameinfo },
    "IPSocket#addr with a reverse look-up" => -> { TCPServer.open("127.0.0.1", 0) { |io| io.addr(true)[2] } },
    "UDPSocket#connect to a named service" => lambda {
      UDPSocket.open.then { |io| (io.connect("localhost", "domain") && io.peeraddr).tap { io.close } }
    },
    "UDPSocket#send to a named service" => -> { UDPSocket.open.then { |io| io.send("x", 0, "localhost", "domain") } },
    "TCPSocket.new with a service that does not exist" =>
      -> { without_message { TCPSocket.new("localhost", "no such service") } },
    "TCPSocket.new with a scope that does not exist" =>
      -> { without_message { TCPSocket.new("fe80::1%nowhere", 80) } },
    "TCPSocket.new with an address that has a leading zero, to a closed port" => -> { TCPSocket.new("127.0.0.01", 1) },
    "TCPSocket.new with four numbers that are no address" => -> { without_message { TCPSocket.new("1.2.3.400", 1) } },
    "TCPSocket.new without a port" => -> { TCPSocket.new("localhost", nil) },
    "TCPSocket.new with a null byte" => -> { TCPSocket.new("local\0host", 80) },
    "TCPSocket.new with a Symbol" => -> { TCPSocket.new(:localhost, 80) },
    "TCPSocket.new with an unknown option" => -> { TCPSocket.new("localhost", 80, whatever: 1) },
    "TCPSocket.new with too few arguments" => -> { TCPSocket.new("localhost") },
    "TCPSocket.new with a name that is too long" => -> { without_message { TCPSocket.new("x" * 2000, 80) } },
    "TCPSocket.new with a time that is negative" => -> { TCPSocket.new("localhost", 80, resolv_timeout: -1) }
  }.each do |name, call|
    it name do
      expect_same_outcome { instance_exec(&call) }
    end
  end
end
