# frozen_string_literal: true

# A child that is forked while tasks read does its own work, and the reads go on

one, other = UNIXSocket.pair
reader = task { other.read(5) }
settle
pid = fork { exit!(IO.pipe { |input, output| output.write("x") && input.read(1) } == "x" ? 4 : 5) }
Process.wait(pid)
say $CHILD_STATUS.exitstatus
one.write("whole")
say reader.value
