# frozen_string_literal: true

# recv with MSG_PEEK and MSG_WAITALL

one, other = UNIXSocket.pair
waiter = task { other.recv(6, Socket::MSG_WAITALL) }
settle
one.write("abc")
settle
one.write("def")
say waiter.value
one.write("peek")
say other.recv(2, Socket::MSG_PEEK), other.recv(10)
one.close
say other.recv(1).to_s, other.read
