# frozen_string_literal: true

require "json"
require "rbconfig"
require_relative "left_out"
require_relative "machine"

# The clients of a server: always another process, on the other processor. It prints its report as JSON and ends.
#
# `wrk` makes the load where it is installed, because it costs next to nothing; else the small client of our own
# does, and the report says so. wrk speaks HTTP only, but for an echo server it is enough that the request is written
# like a response: it comes back as one.
class Load
  CLIENTS = File.expand_path("../clients", __dir__)
  WRK = Machine.tool("wrk")

  # Closed loop, all connections busy, for so many seconds.
  def self.busy(request:, answer_size:, connections:, seconds:)
    return new(nil, wrk: { request:, connections:, seconds: }) if WRK

    turning(request:, answer_size:, connections:, seconds:, window: connections)
  end

  # Closed loop over the connections in turn, so many of them waiting for an answer at any time.
  def self.turning(request:, answer_size:, connections:, seconds:, window:)
    new("turning.rb", request:, answer_size:, connections:, seconds:, window:)
  end

  # Connections on which nothing ever happens, until this end's input is closed.
  def self.parked(connections:) = new("parked.rb", connections:)

  # One connection that asks, waits a little and asks again, until the server hangs up.
  def self.paced(**) = new("paced.rb", **)

  def initialize(client, wrk: nil, **parameters)
    @client = client
    @wrk = wrk
    @parameters = parameters
  end

  def start(port)
    command = if @wrk
                wrk(**@wrk,
              port:)
              else
                [RbConfig.ruby, "#{CLIENTS}/#{@client}", JSON.generate(@parameters.merge(port:))]
              end
    environment = { "HEDDLE_REQUEST" => @wrk && @wrk[:request] }
    IO.popen(environment, Machine.on(Machine::CLIENT, command), "r+", err: %i[child out])
  end

  # The report is the last line; wrk prints its own before it. There is none if the clients broke.
  def report_of(output)
    JSON.parse(output.lines.last.to_s, symbolize_names: true)
  rescue JSON::ParserError
    nil
  end

  private

  def wrk(connections:, seconds:, port:, **)
    [WRK, "--threads", "1", "--connections", connections.to_s, "--duration", "#{[seconds.round, 1].max}s",
     "--timeout", "10s", "--latency", "--script", "#{CLIENTS}/wrk.lua", "http://127.0.0.1:#{port}/"]
  end
end
