# frozen_string_literal: true

# SIGTERM ends the process by the signal, after each `ensure`

task do
  sleep
ensure
  say :ensured
end
settle
Process.kill(:TERM, Process.pid)
sleep
say :never
