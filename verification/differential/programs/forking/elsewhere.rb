# frozen_string_literal: true

# A fiber of another scheduler forks while tasks wait

reader, writer = IO.pipe
waiter = task { reader.read(2) }
settle
say elsewhere { Process.wait2(fork { sleep(0.01) && exit!(3) }).last.exitstatus }.value
writer.write("ok")
say waiter.value
