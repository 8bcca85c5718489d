# frozen_string_literal: true

require "socket"
require_relative "../support/load"
require_relative "../../report/statistics"
require_relative "../support/cpu_bound_fibers"

# Jobs that stream beside one that computes: each reads a chunk every 20 ms from another process, as a job does that
# passes on what a language model writes. A gap is the time between two chunks of a job, in milliseconds; a job that
# could always run would see 20. Counted from when the other job begins to compute until it ends.
class StreamsBesideCpuBound
  PAUSE = 0.02

  def initialize(streams:, fibers:, units:)
    @streams = streams
    @cpu_bound = CpuBoundFibers.new(fibers, units)
    @gaps = []
  end

  def measure(contestant)
    listener = TCPServer.new("127.0.0.1", 0).tap { |server| server.listen(@streams) }
    clients = Load.streaming(connections: @streams, pause: PAUSE).start(listener.local_address.ip_port)
    contestant.run { Fiber.schedule { serve(listener, contestant) } }
    clients.read
    { operations: @cpu_bound.done, expected: @cpu_bound.all, gaps: @gaps.size, **Statistics.latencies(@gaps.sort) }
  end

  private

  # The CPU-bound fiber starts once every job has had a chunk.
  def serve(listener, contestant)
    sockets = Array.new(@streams) { listener.accept.tap { |socket| socket.readpartial(100) } }
    sockets.each { |socket| Fiber.schedule { stream(socket) } }
    @cpu_bound.start(contestant)
  end

  def stream(socket)
    last = Clock.now
    loop do
      socket.readpartial(100)
      now = Clock.now
      @gaps << ((now - last) * 1000).round(3)
      last = now
      break unless @cpu_bound.computing?
    end
    socket.close
  end
end
