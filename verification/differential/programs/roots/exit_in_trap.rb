# frozen_string_literal: true

# exit in a trap handler ends the program with its status

trap("TERM") { exit(9) }
at_exit { say :at_exit }
scheduled do
  Thread.new { settle && Process.kill(:TERM, Process.pid) }
  sleep
ensure
  say :ensured
end
say :never
