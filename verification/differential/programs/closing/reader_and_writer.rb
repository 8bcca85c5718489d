# frozen_string_literal: true

# A task that reads and one that writes the same socket both get IOError

one, _other = UNIXSocket.pair
reader = task { attempt { one.read(1) } }
writer = task { attempt { one.write("w" * 4_000_000) } }
settle
one.close
say reader.value, writer.value
