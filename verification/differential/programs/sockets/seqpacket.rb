# frozen_string_literal: true

# Packets of a SEQPACKET pair keep their borders

one, other = UNIXSocket.pair(:SEQPACKET)
waiter = task { Array.new(3) { other.recv(100) } }
%w[one three fiver].each { |text| one.send(text, 0) }
say waiter.value
