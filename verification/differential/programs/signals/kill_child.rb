# frozen_string_literal: true

# A child that a signal ended has its termsig

pid = spawn("sleep", "60")
waiter = task { Process.wait2(pid).last }
settle
Process.kill(:TERM, pid)
status = waiter.value
say status.signaled?, status.termsig, status.success?
