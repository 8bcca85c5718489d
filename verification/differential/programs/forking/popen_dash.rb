# frozen_string_literal: true

# IO.popen("-") forks a child that answers

io = IO.popen("-", "r+")
if io
  io.write("question")
  io.close_write
  say io.read
  io.close
  say $CHILD_STATUS.success?
else
  $stdout.syswrite($stdin.read.reverse)
  exit!(0)
end
