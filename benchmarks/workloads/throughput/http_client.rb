# frozen_string_literal: true

require "net/http"
require "socket"
require_relative "../support/repeating"
require_relative "../support/tally"

# 20 clients by Net::HTTP, each on a connection of its own that stays open, ask a server in the same process. Net::HTTP
# reads with a timeout, through its own buffer: `read_nonblock` first, then `wait_readable`.
#
# An operation is a response whose body has the right size.
class HttpClient
  include Repeating

  EMPTY_LINE = "\r\n"

  # @param size [Integer] bytes of a response's body
  def initialize(size:, clients: 20, seconds: 1)
    @size = size
    @clients = clients
    @seconds = seconds * SCALE
    @response = "HTTP/1.1 200 OK\r\nContent-Length: #{size}\r\n\r\n#{"x" * size}".freeze
  end

  def once(contestant)
    tally = Tally.new(@clients, seconds: @seconds)
    listener = TCPServer.new("127.0.0.1", 0)
    contestant.run do
      Fiber.schedule { @clients.times { accept(listener) } }
      @clients.times { Fiber.schedule { ask(listener.local_address.ip_port, tally) } }
      tally.start
    end
    tally.result
  ensure
    listener&.close
  end

  private

  def accept(listener)
    socket = listener.accept
    socket.setsockopt(:TCP, :NODELAY, true)
    Fiber.schedule { answer(socket) }
  end

  def ask(port, tally)
    Net::HTTP.start("127.0.0.1", port) do |http|
      tally.repeat { http.get("/").body.bytesize == @size }
    end
  end

  def answer(socket)
    while socket.gets
      nil until [nil, EMPTY_LINE].include?(socket.gets)
      socket.write(@response)
    end
  ensure
    socket.close
  end
end
