# frozen_string_literal: true

require_relative "growth"

# The memory of an idle connection: 10,000 are accepted, each has a fiber that waits to read, and no data ever comes.
# The figure is the growth of the process's resident memory, divided by their number. It does not include the kernel's
# socket buffers.
#
# Memory is read after a garbage collection, once the fiber of every connection waits.
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

    @listener = TCPServer.new("127.0.0.1", 0)
    @listener.listen(Server::BACKLOG)
    @clients = Load.parked(connections: @connections).start(@listener.local_address.ip_port)
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
