# frozen_string_literal: true

require "socket"
require_relative "../support/load"
require_relative "../../report/statistics"
require_relative "../support/cpu_bound_fibers"

# An echo round trip, as another process sees it, with a server that also computes. One client sends a byte, waits for
# it to come back, pauses 2 ms and repeats until the CPU-bound fibers finish. It stands for a web server's user while
# the server computes a large answer for another user.
class EchoBesideCpuBound
  PAUSE = 0.002

  def initialize(fibers:, units:)
    @cpu_bound = CpuBoundFibers.new(fibers, units)
  end

  def measure(contestant)
    listener = TCPServer.new("127.0.0.1", 0)
    load = Load.paced(pause: PAUSE)
    clients = load.start(listener.local_address.ip_port)
    contestant.run do
      Fiber.schedule { serve(listener.accept, contestant) }
    end
    report = load.report_of(clients.read) or raise "the client printed no report"
    report.merge(operations: @cpu_bound.done, expected: @cpu_bound.all, least_share: @cpu_bound.least_share,
                 **Statistics.latencies(report[:round_trips].sort))
  end

  private

  # The CPU-bound fibers start once the client is connected.
  def serve(socket, contestant)
    socket.setsockopt(:TCP, :NODELAY, true)
    socket.write(socket.readpartial(1))
    @cpu_bound.start(contestant)
    # A scheduler without preemption runs the CPU-bound fibers to their end first; the client's next byte waits then.
    loop do
      socket.write(socket.readpartial(1))
      break unless @cpu_bound.computing?
    end
    socket.close
  end
end
