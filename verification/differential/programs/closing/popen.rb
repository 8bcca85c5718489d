# frozen_string_literal: true

# IO.popen's pipe is closed while a task reads it

io = IO.popen("cat", "r+")
waiter = task { attempt { io.read } }
settle
io.close
say waiter.value, $CHILD_STATUS.success?
