# frozen_string_literal: true

# A handler for one signal runs within another

order = []
trap("USR2") { order << :inner }
trap("USR1") do
  order << :outer
  Process.kill(:USR2, Process.pid)
  order << :outer_done
end
task { Process.kill(:USR1, Process.pid) }.join
sleep(0.001) until order.size == 3
say order.sort
