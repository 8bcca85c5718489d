# frozen_string_literal: true

# A child answers by a pipe, and its `exit` runs no `ensure` of another task

finish = Thread::Queue.new
other = task do
  finish.pop
ensure
  say :ensured
end
reader, writer = IO.pipe
pid = fork do
  reader.close
  writer.write("from the child")
  exit!(0)
end
writer.close
say reader.read, Process.wait(pid) == pid
finish << true
other.join
