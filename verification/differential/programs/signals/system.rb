# frozen_string_literal: true

# A signal during system leaves the status right

trap("USR1") { nil }
shooter = Thread.new { 5.times { sleep(0.01) && Process.kill(:USR1, Process.pid) } }
say system("sleep 0.1; exit 3"), $CHILD_STATUS.exitstatus
shooter.join
