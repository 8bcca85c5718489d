# frozen_string_literal: true

# A child's connection under a number that a parent's task reads gets its own bytes

one, other = UNIXSocket.pair
reader = task { attempt { other.read(4) } }
settle
pid = fork do
  number = other.fileno
  other.close
  exit!(intact?(retake(number)) ? 0 : 9)
end
Process.wait(pid)
one.write("fine")
say $CHILD_STATUS.exitstatus, reader.value
