# frozen_string_literal: true

require "heddle"
require "socket"
require_relative "../support/http_connection"

# Servers in a process of their own, so that the demo does not measure them.
class Servers
  attr_reader :http, :echo

  # @param delay [Numeric] seconds until the HTTP server answers a request
  def initialize(delay)
    @delay = delay
    @listeners = Array.new(2) { TCPServer.new("127.0.0.1", 0) }
    @http, @echo = @listeners.map { |listener| listener.addr[1] }
    lifeline, @writer = IO.pipe
    @pid = fork { run(lifeline) }
    [lifeline, *@listeners].each(&:close)
  end

  def stop
    @writer.close
    Process.wait(@pid)
  end

  private

  def run(lifeline)
    # Ctrl-C is for the parent. When the parent ends, even by SIGKILL, the pipe closes.
    trap(:INT, "IGNORE")
    @writer.close
    Heddle.run do
      Fiber.schedule { accept(@listeners[0]) { |client| answer_slowly(client) } }
      Fiber.schedule { accept(@listeners[1]) { |client| echo_lines(client) } }
      lifeline.read
      exit!(true)
    end
  end

  def accept(listener)
    loop do
      client = listener.accept
      Fiber.schedule do
        yield client
      ensure
        client.close
      end
    end
  end

  def answer_slowly(client)
    HttpConnection.new(client, keep_alive: false).serve do
      sleep @delay
      [200, "hello"]
    end
  end

  def echo_lines(client)
    while (line = client.gets)
      client.write(line)
    end
  end
end
