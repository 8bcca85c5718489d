# frozen_string_literal: true

# SIGINT ends the process by the signal, after each `ensure`

ended = []
at_exit { say ended.sort }
task do
  sleep
ensure
  ended << :task
end
settle
begin
  Process.kill(:INT, Process.pid)
  sleep(3)
ensure
  ended << :main
end
