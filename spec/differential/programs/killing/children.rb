# frozen_string_literal: true

# A task that is killed while its child runs leaves the child to be waited for

pids = Queue.new
victim = task do
  pid = spawn("sleep", "0.1")
  pids << pid
  Process.wait(pid)
end
pid = pids.pop
settle
victim.kill
victim.join
say Process.wait(pid) == pid
