# frozen_string_literal: true

# A child that is forked among tasks ends by itself, and the parent goes on

ended = scheduled do
  waiter = task { sleep(0.1) && :slept }
  pid = fork { say :child }
  Process.wait(pid)
  [waiter.value, $CHILD_STATUS.exitstatus]
end
say ended
