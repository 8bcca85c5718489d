# frozen_string_literal: true

# SIGINT ends the process by the signal, after each `ensure`

task do
  sleep
ensure
  say :ensured
end
settle
Process.kill(:INT, Process.pid)
sleep
say :never
