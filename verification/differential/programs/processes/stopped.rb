# frozen_string_literal: true

# Process.wait2 with WUNTRACED tells of a child that was stopped

pid = spawn("sleep", "60")
Process.kill(:STOP, pid)
status = Process.wait2(pid, Process::WUNTRACED).last
say status.stopped?, Process.kill(:KILL, pid), Process.wait2(pid).last.termsig
