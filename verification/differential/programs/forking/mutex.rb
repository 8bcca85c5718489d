# frozen_string_literal: true

# A Mutex that a task holds can be locked in the child if the child's task holds it

mutex = Mutex.new
outcome = mutex.synchronize do
  pid = fork { exit!(mutex.owned? && mutex.locked? ? 0 : 1) }
  Process.wait2(pid).last.exitstatus
end
say outcome, mutex.locked?
