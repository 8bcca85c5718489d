# frozen_string_literal: true

# A child that closes its copies does not disturb the parent's operations

one, other = UNIXSocket.pair
reader = task { attempt { other.read(4) } }
settle
pid = fork do
  [one, other].each(&:close)
  exit!(0)
end
Process.wait(pid)
one.write("fine")
say reader.value
