# frozen_string_literal: true

# A child reads from the connection that a task of the parent was reading

one, other = UNIXSocket.pair
reader = task { attempt { other.readpartial(10) } }
settle
one.write("parent")
say reader.value
child, parent = IO.pipe
pid = fork do
  parent.write(other.readpartial(10))
  exit!(0)
end
settle
one.write("child")
parent.close
say child.read, Process.wait(pid) == pid
