# frozen_string_literal: true

# A grandchild answers through its parent

pid = fork do
  grandchild = fork { sleep(0.01) && exit!(5) }
  Process.wait(grandchild)
  exit!($CHILD_STATUS.exitstatus + 1)
end
say Process.wait2(pid).last.exitstatus
