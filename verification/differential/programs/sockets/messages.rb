# frozen_string_literal: true

# sendmsg and recvmsg carry data and addresses

one = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
other = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
waiter = task { other.recvmsg.first(2).then { |text, address| [text, address.ip_port == one.local_address.ip_port] } }
settle
say one.sendmsg("message", 0, other.local_address), waiter.value, other.recvmsg_nonblock(exception: false)
