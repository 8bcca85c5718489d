# frozen_string_literal: true

# A read under way during a fork is the parent's alone

one, other = UNIXSocket.pair
reader = task { other.read(10) }
settle
one.write("first")
pid = fork { sleep(0.05) && exit!(0) }
one.write("other")
say reader.value, Process.wait(pid) == pid
