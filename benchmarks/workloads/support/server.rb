# frozen_string_literal: true

require "socket"
require_relative "../../run/clock"

# The TCP server of the network workloads, as a user would write it: a fiber that accepts, and a fiber per connection.
# The clients are another process. Once they have printed their report, the server connects to itself a last time. So
# `accept` returns and the accepting fiber ends, without closing a listener that a fiber is waiting on.
#
# Records when each connection got its first answer: a connection is starved if it got none while the load lasted.
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

  # Serves the load's clients. The block gets a socket, and a callable that it calls after each answer.
  def serve(contestant, load, &handler)
    clients = load.start(port)
    contestant.run do
      Fiber.schedule { accept(handler) }
      Fiber.schedule { wait_for(clients, load) }
    end
    report or raise "the clients printed no report:\n#{@output}"
  end

  # The number of connections that got no answer in the first `seconds`.
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
    nil # the clients have finished
  ensure
    socket.close
  end

  def wait_for(clients, load)
    @report = load.report_of(@output = clients.read)
    clients.close
  ensure
    @over = true
    TCPSocket.new("127.0.0.1", port).close
  end
end
