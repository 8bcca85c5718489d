# frozen_string_literal: true

# Process.wait, wait2, waitall, detach and WNOHANG

reader, writer = IO.pipe
pid = spawn("read line; exit 2", in: reader)
say Process.wait(pid, Process::WNOHANG)
writer.close
say Process.wait2(pid).then { |found, status| [found == pid, status.exitstatus] }
pids = Array.new(3) { |number| spawn("exit #{number}") }
say Process.waitall.map { |found, status| [pids.index(found), status.exitstatus] }.sort
say Process.detach(spawn("exit 6")).value.exitstatus, attempt { Process.wait }, attempt { Process.wait(1) }
