# frozen_string_literal: true

# A thread forks while tasks wait

reader, writer = IO.pipe
waiter = task { reader.read(2) }
settle
say Thread.new { Process.wait2(fork { exit!(3) }).last.exitstatus }.value
writer.write("ok")
say waiter.value
