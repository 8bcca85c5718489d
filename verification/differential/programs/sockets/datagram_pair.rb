# frozen_string_literal: true

# A full UNIX datagram socket makes the sender wait

one, other = UNIXSocket.pair(:DGRAM)
sender = task { 500.times { |number| one.send(number.to_s, 0) } && :sent }
settle
say Array.new(500) { other.recv(10) } == Array.new(500, &:to_s), sender.value
