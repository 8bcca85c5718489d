# frozen_string_literal: true

require_relative "../support/load"
require_relative "../support/repeating"
require_relative "../support/server"

# An echo server with 50 connections from another process, which sends 1 KiB on each and waits for it to come back. It
# measures the rate of round trips and their duration at the client, in percentiles. Two processors: one for the server,
# one for the clients.
#
# The request looks like an HTTP response, because wrk receives what it has sent (workloads/support/load.rb).
class TcpEcho
  SIZE = 1024
  HEAD = "HTTP/1.1 200 OK\r\nContent-Length: "
  TAIL = "\r\n\r\n"
  BODY = SIZE - HEAD.size - TAIL.size - "123".size
  MESSAGE = "#{HEAD}#{BODY}#{TAIL}#{"x" * BODY}".freeze

  # A connection whose first answer comes in the last tenth of the time counts as starved.
  IN_TIME = 0.9

  def initialize(connections: 50, seconds: 2)
    @connections = connections
    @seconds = [seconds * Repeating::SCALE, 1].max
  end

  def measure(contestant)
    server = Server.new
    cpu = Clock.cpu
    answers = 0
    report = server.serve(contestant, load) do |socket, answered|
      converse(socket) do
        answers += 1
        answered.call
      end
    end
    cpu = Clock.cpu - cpu
    check(report, answers)
    report.merge(fibers: @connections, starved: server.starved(@connections, in_time),
                 rate: report[:operations] / report[:seconds], cpu_seconds: cpu,
                 cpu_us: cpu / answers * 1e6)
  end

  private

  def in_time = @seconds * IN_TIME

  def load = Load.busy(request: MESSAGE, answer_size: SIZE, connections: @connections, seconds: @seconds)

  def converse(socket)
    buffer = +""
    loop do
      socket.write(socket.readpartial(SIZE, buffer))
      yield
    end
  end

  # The clients' count lacks the answers that were on their way when the clients stopped.
  def check(report, answers)
    report[:expected] = report[:operations]
    return if report[:errors].zero? && answers >= report[:operations]

    raise "#{answers} answers, but #{report[:operations]} arrived and #{report[:errors]} failed"
  end
end
