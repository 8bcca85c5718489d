# frozen_string_literal: true

# A child whose wait timed out can be waited for again

input, release = IO.pipe
pid = spawn("cat", in: input)
say attempt { Timeout.timeout(0.02) { Process.wait(pid) } }
release.close
say Process.wait(pid) == pid, $CHILD_STATUS.exitstatus
