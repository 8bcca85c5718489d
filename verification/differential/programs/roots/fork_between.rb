# frozen_string_literal: true

# A child runs tasks of its own after the parent's have ended

scheduled { task { sleep(0.001) } }
pid = fork { exit!(scheduled { IO.pipe { |input, output| output.write("x") && input.read(1) } } == "x" ? 4 : 5) }
Process.wait(pid)
say $CHILD_STATUS.exitstatus, scheduled { :parent }
