# frozen_string_literal: true

# IO.popen's pipe is closed while a task reads it

io = IO.popen(["sleep", "0.3"])
waiter = task { attempt { io.read } }
settle
io.close
say waiter.value, $CHILD_STATUS.success?
