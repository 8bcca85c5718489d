# frozen_string_literal: true

# A child gets a connection by a UNIX socket and answers on it

one, other = UNIXSocket.pair
left, right = UNIXSocket.pair
pid = fork do
  other.recv_io(UNIXSocket).write("from the child")
  exit!(0)
end
settle
one.send_io(right)
right.close
say left.read, Process.wait(pid) == pid
