# frozen_string_literal: true

# $? belongs to the task that has waited last

first = task { Process.wait(spawn("exit 1")) && sleep(0.02) && $CHILD_STATUS&.exitstatus.class }
say first.value
system("exit 9")
say $CHILD_STATUS.exitstatus, Process.last_status.pid == $CHILD_STATUS.pid
