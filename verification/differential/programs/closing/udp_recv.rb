# frozen_string_literal: true

# UDPSocket's recv, recvfrom and recvmsg end with IOError when the socket is closed

outcomes = [-> { _1.recv(10) }, -> { _1.recvfrom(10) }, -> { _1.recvmsg }].map do |receive|
  socket = UDPSocket.new
  socket.bind("127.0.0.1", 0)
  waiter = task { attempt { receive.call(socket) } }
  settle
  socket.close
  waiter.value
end
say outcomes
