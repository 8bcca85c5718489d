# frozen_string_literal: true

# A name server: dns.rb PORT. It answers 192.0.2.7 to everything, to slow0.2.test after that many seconds. It listens on
# TCP, too, which says that it is ready.

require "resolv"
require "socket"

port = Integer(ARGV.fetch(0))
# Both in a variable: the garbage collector would close the second one.
sockets = [UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", port) }, TCPServer.new("127.0.0.1", port)]
server = sockets.first
loop do
  request, (_, sender) = server.recvfrom(512)
  Thread.new do
    query = Resolv::DNS::Message.decode(request)
    answer = Resolv::DNS::Message.new(query.id).tap { |made| made.qr = 1 }
    query.each_question do |name, type|
      sleep(Float(name.to_s[/\Aslow([\d-]+)/, 1].tr("-", "."))) if name.to_s.start_with?("slow")
      answer.add_question(name, type)
      answer.add_answer(name, 60, Resolv::DNS::Resource::IN::A.new("192.0.2.7")) if type == Resolv::DNS::Resource::IN::A
    end
    server.send(answer.encode, 0, "127.0.0.1", sender)
  end
end
