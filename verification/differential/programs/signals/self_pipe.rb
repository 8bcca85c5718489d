# frozen_string_literal: true

# A trap handler wakes a task by a pipe

reader, writer = IO.pipe
trap("USR1") { writer.write_nonblock("s") }
waiter = task { reader.read(1) }
settle
Process.kill(:USR1, Process.pid)
say waiter.value
