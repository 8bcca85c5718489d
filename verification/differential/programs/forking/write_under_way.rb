# frozen_string_literal: true

# A write under way during a fork arrives once

one, other = UNIXSocket.pair
writer = task { one.write("w" * 2_000_000).tap { one.close } }
settle
pid = fork do
  one.close
  exit!(0)
end
Process.wait(pid)
say other.read.bytesize, writer.value
