# frozen_string_literal: true

# A trace of a small web server beside a fiber that computes.
#
#   ruby -Ilib examples/trace.rb [file [seconds]]        trace.json and 0.5 by default
#
# Open the file at https://ui.perfetto.dev or, in Chrome, at chrome://tracing. Each fiber has a track: "fib" computes,
# and is preempted when a request arrives; "accept" waits for connections; each connection has a fiber, which is named
# by its request; "log" waits for lines in a Queue; the clients ask and sleep in turn. An arrow leads from a fiber that
# wakes another one to that one.

require "heddle"
require "socket"
require_relative "support/http_connection"

module TraceExample
  CLIENTS = 2
  PAUSE = 0.004

  module_function

  def fib(number) = number <= 1 ? 1 : fib(number - 1) + fib(number - 2)

  # Returns the summary of the trace.
  def run(path, seconds)
    Heddle.run do
      listener = TCPServer.new("127.0.0.1", 0)
      port = listener.addr[1]
      @lines = Queue.new
      Heddle.spin(name: "log", background: true) { loop { @written = @lines.pop } }
      Heddle.spin(name: "accept", background: true) { serve(listener) }
      YieldingFiber.schedule { compute }
      CLIENTS.times { |number| Heddle.spin(name: "client #{number + 1}", background: true) { ask(port) } }
      Heddle.trace(path, seconds:)
    ensure
      @finished = true
    end
  end

  def serve(listener)
    loop do
      client = listener.accept
      Fiber.schedule { answer(client) }
    end
  end

  def answer(client)
    HttpConnection.new(client).serve do |request|
      Heddle.annotate("#{request.verb} #{request.path}")
      @lines.push("#{request.path} at #{Time.now}")
      [200, "fib(10) = #{fib(10)}\n"]
    end
  end

  def compute
    Heddle.annotate("fib")
    fib(15) until @finished
  end

  def ask(port)
    TCPSocket.open("127.0.0.1", port) do |socket|
      loop do
        socket.write("GET /fib HTTP/1.1\r\n\r\n")
        length = nil
        until (line = socket.gets.chomp).empty?
          length = line[/\Acontent-length: (\d+)/i, 1] || length
        end
        socket.read(Integer(length))
        sleep PAUSE
      end
    end
  end
end

if $PROGRAM_NAME == __FILE__
  begin
    path = ARGV.fetch(0, "trace.json")
    summary = TraceExample.run(path, Float(ARGV.fetch(1, 0.5)))
    puts format("%<path>s has %<events>d events of %<seconds>.1f s; %<dropped>d were dropped.", **summary.to_h)
    puts "Open it at https://ui.perfetto.dev."
  rescue Interrupt
    puts "Bye."
  end
end
