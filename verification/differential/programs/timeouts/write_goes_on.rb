# frozen_string_literal: true

# A write that timed out has written a beginning at most, and later writes follow it

one, other = UNIXSocket.pair
say attempt { Timeout.timeout(0.05) { one.write("w" * 4_000_000) } }
reading = task { other.read }
one.write("END")
one.close
text = reading.value
say text.end_with?("END"), text.count("^w"), text.bytesize < 4_000_000
