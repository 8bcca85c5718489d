# frozen_string_literal: true

# A UDP socket that takes the number of a closed one receives its own datagrams

outcomes = Array.new(10) do |round|
  closed = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
  waiter = task { error_of { closed.recv(100) } }
  settle
  closed.close
  fresh = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
  sender = UDPSocket.new
  sender.send("datagram #{round}", 0, "127.0.0.1", fresh.addr[1])
  [fresh.recv(100) == "datagram #{round}", waiter.value].tap { [fresh, sender].each(&:close) }
end
say outcomes.tally
