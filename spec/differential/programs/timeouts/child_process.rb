# frozen_string_literal: true

# A child whose wait timed out can be waited for again

pid = spawn("sleep", "0.15")
say attempt { Timeout.timeout(0.02) { Process.wait(pid) } }
say Process.wait(pid) == pid, $CHILD_STATUS.exitstatus
