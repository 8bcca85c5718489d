# frozen_string_literal: true

# A server that accepts onto the number of a connection just closed talks to the new client

server = TCPServer.new("127.0.0.1", 0)
outcomes = Array.new(10) do |round|
  client = TCPSocket.new("127.0.0.1", server.addr[1])
  accepted = server.accept
  waiter = task { error_of { accepted.gets } }
  client.write("no end of line")
  settle
  accepted.close
  second = TCPSocket.new("127.0.0.1", server.addr[1])
  fresh = server.accept
  second.write("round #{round}\n")
  [fresh.gets == "round #{round}\n", waiter.value].tap { [client, second, fresh].each(&:close) }
end
say outcomes.tally
