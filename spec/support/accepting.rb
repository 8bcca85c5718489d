# frozen_string_literal: true

# Servers in fibers, and addresses without a server.
module Accepting
  # Yields an address that refuses connections. No other process gets its port meanwhile.
  # @yieldparam address [Addrinfo]
  def with_refusing_address
    Socket.open(:INET, :STREAM) do |socket|
      socket.bind(Addrinfo.tcp("127.0.0.1", 0))
      yield socket.local_address
    end
  end

  # Accepts so many connections in a fiber of its own. Each connection has a fiber, which runs the block.
  def accept_each(server, connections)
    Fiber.schedule do
      connections.times do
        socket = server.accept
        Fiber.schedule do
          yield socket
        ensure
          socket.close
        end
      end
    end
  end
end
