# frozen_string_literal: true

require "socket"
require_relative "clock"

# The TCP server of the network workloads, as a user would write it: a fiber that accepts, and a fiber per connection.
# The clients are another process. Once that one has printed its report, the server lets itself be connected to a last
# time, so that the accepting fiber comes back and can leave; nothing is closed under somebody's feet.
#
# Notes when each connection got its first answer: who got none while the load lasted was starved.
class Server
  BACKLOG = 4096

  attr_reader :report, :started

  def initialize
    @listener = TCPServer.new("127.0.0.1", 0)
    @listener.listen(BACKLOG)
    @first_answers = []
    @over = false
  end

  def port = @listener.local_address.ip_port

  # Serves the clients of the load with the block, which gets a socket and what to call after an answer.
  def serve(contestant, load, &handler)
    clients = load.start(port)
    contestant.run do
      Fiber.schedule { accept(handler) }
      Fiber.schedule { wait_for(clients, load) }
    end
    report or raise "the clients broke:\n#{@said}"
  end

  # How many of so many connections got no answer in the first `seconds`.
  def starved(connections, seconds)
    limit = @started + seconds
    [connections - @first_answers.count { |time| time < limit }, 0].max
  end

  private

  def accept(handler)
    loop do
      socket = @listener.accept
      break socket.close if @over

      @started ||= Clock.now
      Fiber.schedule { converse(socket, handler) }
    end
  end

  def converse(socket, handler)
    answered = false
    handler.call(socket, lambda {
      @first_answers << Clock.now unless answered
      answered = true
    })
  rescue EOFError, Errno::ECONNRESET, Errno::EPIPE
    nil # the clients are through
  ensure
    socket.close
  end

  def wait_for(clients, load)
    @report = load.report_of(@said = clients.read)
    clients.close
  ensure
    @over = true
    TCPSocket.new("127.0.0.1", port).close
  end
end
