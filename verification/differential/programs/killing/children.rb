# frozen_string_literal: true

# A task that is killed while its child runs leaves the child to be waited for

input, release = IO.pipe
pid = spawn("cat", in: input)
victim = task { Process.wait(pid) }
settle
victim.kill
victim.join
release.close
say Process.wait(pid) == pid
