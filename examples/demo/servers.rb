# frozen_string_literal: true

require "heddle"
require "socket"

# Servers in a process of their own, so that they don't share in what is measured.
class Servers
  attr_reader :http, :echo

  # @param delay [Numeric] seconds that the HTTP server takes for each request
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
    # Ctrl-C is for the parent. When that is gone, however it went, the pipe ends.
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
    nil until client.gets.chomp.empty?
    sleep @delay
    client.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
  end

  def echo_lines(client)
    while (line = client.gets)
      client.write(line)
    end
  end
end
