# frozen_string_literal: true

# Process.wait(-pgid) waits for the processes of a group

leader = spawn("sleep 0.05; exit 1", pgroup: true)
other = spawn("exit 2")
say Process.wait2(-leader).then { |pid, status| [pid == leader, status.exitstatus] }
say Process.wait2(other).last.exitstatus
say attempt { Process.wait(-leader) }
