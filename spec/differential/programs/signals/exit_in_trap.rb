# frozen_string_literal: true

# exit in a trap handler ends the program with its status

trap("TERM") { exit(9) }
at_exit { say :at_exit }
task { sleep }
Thread.new { settle && Process.kill(:TERM, Process.pid) }
begin
  sleep(3)
ensure
  say :ensured
end
