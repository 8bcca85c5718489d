# frozen_string_literal: true

require "socket"
require_relative "../support/repeating"
require_relative "../support/tally"

# 200 connections that are idle except for their heartbeats, as those of WebSockets: every 20 ms a fiber sends a ping of
# two bytes and waits for the pong. The fiber at the other end waits for the ping with a time limit.
#
# An operation is a pong. The rate has a limit, that of the sleeps, so compare `cpu_us`.
class Heartbeats
  include Repeating

  PAUSE = 0.02
  PING = "\x89\x00".b.freeze
  PONG = "\x8A\x00".b.freeze
  LIMIT = 10

  def initialize(connections: 200, seconds: 1)
    @connections = connections
    @seconds = seconds * SCALE
  end

  def once(contestant)
    tally = Tally.new(@connections, seconds: @seconds)
    contestant.run do
      @connections.times do
        left, right = UNIXSocket.pair
        Fiber.schedule { beat(left, tally) }
        Fiber.schedule { answer(right) }
      end
      tally.start
    end
    tally.result
  end

  private

  def beat(socket, tally)
    tally.repeat do
      sleep(PAUSE)
      socket.write(PING)
      socket.readpartial(PING.bytesize) == PONG
    end
    socket.close
  end

  def answer(socket)
    socket.timeout = LIMIT
    loop { socket.write(PONG) if socket.readpartial(PING.bytesize) == PING }
  rescue EOFError
    socket.close
  end
end
