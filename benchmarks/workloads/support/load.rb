# frozen_string_literal: true

require "json"
require "rbconfig"
require_relative "../../run/left_out"
require_relative "../../run/machine"

# The clients of a server: always another process, on the other processor. It prints its report as JSON and ends.
#
# `wrk` generates the load where it is installed, because it uses little CPU time. Otherwise a small client in Ruby
# does, and the report says so. wrk speaks HTTP only. For an echo server the request is written like a response: it
# comes back as one.
class Load
  CLIENTS = File.expand_path("../../clients", __dir__)
  WRK = Machine.tool("wrk")

  # Closed loop, all connections busy, for this many seconds.
  def self.busy(request:, answer_size:, connections:, seconds:)
    return new(nil, wrk: { request:, connections:, seconds: }) if WRK

    rotating(request:, answer_size:, connections:, seconds:, window: connections)
  end

  # Closed loop over the connections in rotation; `window` of them wait for an answer at any time.
  def self.rotating(request:, answer_size:, connections:, seconds:, window:)
    new("rotating.rb", request:, answer_size:, connections:, seconds:, window:)
  end

  # Idle connections, until the client's standard input is closed.
  def self.parked(connections:) = new("parked.rb", connections:)

  # One connection that sends a request, pauses after the answer and repeats, until the server closes it.
  def self.paced(**) = new("paced.rb", **)

  # Connections that are sent a chunk every `pause` seconds, until the server closes them.
  def self.streaming(connections:, pause:) = new("streaming.rb", connections:, pause:)

  def initialize(client, wrk: nil, **parameters)
    @client = client
    @wrk = wrk
    @parameters = parameters
  end

  def start(port)
    command = @wrk ? wrk(**@wrk, port:) : ruby(port)
    environment = { "HEDDLE_REQUEST" => @wrk && @wrk[:request] }
    IO.popen(environment, Machine.on(Machine::CLIENT, command), "r+", err: %i[child out])
  end

  # The report is the last line; wrk prints its own before it. Returns nil if the clients failed.
  def report_of(output)
    JSON.parse(output.lines.last.to_s, symbolize_names: true)
  rescue JSON::ParserError
    nil
  end

  private

  def ruby(port) = [RbConfig.ruby, "#{CLIENTS}/#{@client}", JSON.generate(@parameters.merge(port:))]

  def wrk(connections:, seconds:, port:, **)
    [WRK, "--threads", "1", "--connections", connections.to_s, "--duration", "#{[seconds.round, 1].max}s",
     "--timeout", "10s", "--latency", "--script", "#{CLIENTS}/wrk.lua", "http://127.0.0.1:#{port}/"]
  end
end
