# frozen_string_literal: true

# IO.popen talks to a program in both directions

io = IO.popen("cat", "r+")
writer = task { 100.times { |number| io.puts("line #{number}") }.then { io.close_write } }
say io.readlines.size, writer.join.alive?, io.close, $CHILD_STATUS.exitstatus
say IO.popen(["sh", "-c", "exit 5"]) { |output| output.read }, $CHILD_STATUS.exitstatus
say attempt { IO.popen(["/missing"]) }
