# frozen_string_literal: true

# A connection that was used in one run is read in the next one

one, other = UNIXSocket.pair
scheduled { say task { attempt { Timeout.timeout(0.02) { other.read(4) } } }.value }
one.write("text")
scheduled { say other.read(4) }
one.close
say scheduled { other.read }
