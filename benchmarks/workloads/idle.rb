# frozen_string_literal: true

require_relative "growth"

# What a connection costs that waits: 10,000 of them are accepted, each has a fiber that wants to read, and nothing ever
# comes. The process's resident memory before and after, divided by their number. The kernel's own socket buffers are
# not in it.
#
# The memory is looked at after a garbage collection, once every connection's fiber has begun to wait.
class Idle
  KIB = 1024.0
  PAGE = Etc.sysconf(Etc::SC_PAGESIZE)
  SETTLED = 0.2

  def initialize(connections: 10_000)
    @connections = connections
  end

  def measure(contestant)
    room = Machine.raise_descriptors - Growth::BESIDES
    raise LeftOut, "#{@connections} connections, but there are descriptors for #{room} only" if room < @connections

    @clients = Load.parked(connections: @connections).start((@listener = TCPServer.new("127.0.0.1", 0)).tap do |server|
      server.listen(Server::BACKLOG)
    end.local_address.ip_port)
    contestant.run { Fiber.schedule { accept } }
    { operations: @ended, expected: @connections, fibers: @connections, starved: 0,
      kib: (@after - @before) / KIB / @connections }
  rescue ThreadError => e
    raise LeftOut, "#{@connections} connections: #{e.message}"
  end

  private

  def accept
    @ended = 0
    @before = resident
    @connections.times do
      socket = @listener.accept
      Fiber.schedule { park(socket) }
    end
    sleep(SETTLED)
    @after = resident
    @clients.close_write
    @clients.read
  end

  def park(socket)
    socket.readpartial(1)
  rescue EOFError, Errno::ECONNRESET
    @ended += 1
    socket.close
  end

  def resident
    GC.start
    Integer(File.read("/proc/self/statm").split[1]) * PAGE
  end
end
