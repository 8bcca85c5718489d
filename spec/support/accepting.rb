# frozen_string_literal: true

# Servers in fibers.
module Accepting
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
