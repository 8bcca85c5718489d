# frozen_string_literal: true

require "socket"
require_relative "../support/repeating"
require_relative "../support/tally"

# 50 pairs of fibers, each with a pair of connected sockets: one fiber sends 1 KiB and waits for the answer, the other
# echoes. Unlike in `pipe`, no data is there when a read starts. So this is the cost of waiting for an IO: a request to
# the kernel, its completion, and a switch.
#
# An operation is a round trip. The bare limit is two processes that do the same over one pair, on the same CPU.
class Socketpair
  include Repeating

  SIZE = 1024
  MESSAGE = ("x" * SIZE).freeze

  def initialize(pairs: 50, seconds: 1)
    @pairs = pairs
    @seconds = seconds * SCALE
  end

  def once(contestant)
    @asked = 0
    tally = Tally.new(@pairs, seconds: @seconds)
    contestant.run do
      @pairs.times do
        left, right = UNIXSocket.pair
        Fiber.schedule { ask(left, tally) }
        Fiber.schedule { answer(right) }
      end
      tally.start
    end
    tally.result(@asked)
  end

  def bare
    @asked = 0
    left, right = UNIXSocket.pair
    pid = fork do
      left.close
      answer(right)
    end
    right.close
    tally = Tally.new(1, seconds: @seconds)
    tally.start
    ask(left, tally)
    Process.wait(pid)
    tally.result(@asked)
  end

  private

  def ask(socket, tally)
    tally.wait_for_start
    buffer = +""
    bytes = 0
    until tally.over?
      @asked += 1
      socket.write(MESSAGE)
      bytes += socket.readpartial(SIZE, buffer).bytesize
      tally.first_done if bytes == SIZE
    end
    socket.close
    tally.finished(bytes / SIZE)
  end

  def answer(socket)
    buffer = +""
    loop { socket.write(socket.readpartial(SIZE, buffer)) }
  rescue EOFError
    socket.close
  end
end
