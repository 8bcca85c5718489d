# frozen_string_literal: true

require "socket"
require_relative "../support/load"
require_relative "../support/statistics"
require_relative "hogs"

# An echo round trip, as another process sees it, with a server that also computes: one client asks, waits for the
# answer, pauses 2 ms and asks again until the hogs are through. What a user of a web server feels whose neighbour has
# asked for something big.
class EchoBesideHogs
  PAUSE = 0.002

  def initialize(hogs:, units:)
    @hogs = Hogs.new(hogs, units)
  end

  def measure(contestant)
    listener = TCPServer.new("127.0.0.1", 0)
    load = Load.paced(pause: PAUSE)
    clients = load.start(listener.local_address.ip_port)
    contestant.run do
      Fiber.schedule { serve(listener.accept, contestant) }
    end
    report = load.report_of(clients.read) or raise "the client broke"
    report.merge(operations: @hogs.done, expected: @hogs.all, least_share: @hogs.least_share,
                 **percentiles(report[:round_trips].sort))
  end

  private

  def percentiles(sorted)
    { p50_ms: 50, p90_ms: 90, p99_ms: 99, max_ms: 100 }
      .transform_values { |percent| Statistics.percentile(sorted, percent) }
  end

  # The hogs begin once the client is there.
  def serve(socket, contestant)
    socket.setsockopt(:TCP, :NODELAY, true)
    socket.write(socket.readpartial(1))
    @hogs.start(contestant)
    # One that computes to its end at once keeps this fiber waiting, too: the question has come meanwhile.
    loop do
      socket.write(socket.readpartial(1))
      break unless @hogs.computing?
    end
    socket.close
  end
end
