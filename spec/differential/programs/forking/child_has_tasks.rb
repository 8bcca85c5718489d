# frozen_string_literal: true

# A child starts tasks of its own and waits for them

pid = fork do
  reader, writer = IO.pipe
  waiter = task { reader.read(3) }
  sleep(0.01)
  writer.write("own")
  say waiter.value
  exit!(0)
end
Process.wait(pid)
say $CHILD_STATUS.exitstatus
