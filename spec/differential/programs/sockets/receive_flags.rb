# frozen_string_literal: true

# recv with MSG_PEEK, MSG_WAITALL and MSG_DONTWAIT

one, other = UNIXSocket.pair
say attempt { other.recv(5, Socket::MSG_DONTWAIT) }[/EAGAIN/]
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
