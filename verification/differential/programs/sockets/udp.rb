# frozen_string_literal: true

# Datagrams arrive whole at the task that waits

receiver = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
waiter = task { Array.new(10) { receiver.recvfrom(100).then { |text, address| [text, address[3]] } } }
sender = UDPSocket.new.tap { |socket| socket.connect("127.0.0.1", receiver.addr[1]) }
10.times { |number| sender.send("datagram #{number}", 0) && sleep(0.001) }
say waiter.value
say attempt { receiver.recvfrom_nonblock(10) }, receiver.recvfrom_nonblock(10, exception: false)
sender.send("too long for it", 0)
say receiver.recv(3), sender.send("", 0), receiver.recvfrom(5).first
