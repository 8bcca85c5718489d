# frozen_string_literal: true

# A child answers by a pipe, and its `exit` runs no `ensure` of another task

other = task do
  sleep(0.1)
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
other.join
