# frozen_string_literal: true

# A task that a trap handler wakes closes the IO that another task reads

reader, writer = IO.pipe
waiter = task { attempt { reader.read(2) } }
asked = Thread::Queue.new
closer = task { asked.pop && reader.close }
trap("USR1") { asked << true }
settle
Process.kill(:USR1, Process.pid)
closer.join
say waiter.value, attempt { writer.write("x") }
