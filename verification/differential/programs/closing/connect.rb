# frozen_string_literal: true

# Socket#connect that waits ends with IOError when the socket is closed

server = Socket.new(:INET, :STREAM)
server.bind(Addrinfo.tcp("127.0.0.1", 0))
server.listen(0)
address = server.local_address
fillers = Array.new(3) do
  Socket.new(:INET, :STREAM).tap do |socket|
    socket.connect_nonblock(address, exception: false)
  end
end
settle
client = Socket.new(:INET, :STREAM)
waiter = task { attempt { client.connect(address) } }
settle
client.close
say waiter.join(20) ? waiter.value : "waits", fillers.size
