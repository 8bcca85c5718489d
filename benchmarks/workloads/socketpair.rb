# frozen_string_literal: true

require "socket"
require_relative "../support/repeating"
require_relative "../support/turns"

# 50 pairs of fibers, each with a pair of connected sockets: one sends 1 KiB and waits for the answer, the other sends
# back what it gets. Unlike `pipe` every read finds nothing at first, so this is the price of waiting for an IO: to tell
# the kernel, to be told, and to switch.
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
    turns = Turns.new(@pairs, seconds: @seconds)
    contestant.run do
      @pairs.times do
        left, right = UNIXSocket.pair
        Fiber.schedule { ask(left, turns) }
        Fiber.schedule { answer(right) }
      end
      turns.go
    end
    turns.result(@asked)
  end

  def bare
    @asked = 0
    left, right = UNIXSocket.pair
    pid = fork do
      left.close
      answer(right)
    end
    right.close
    turns = Turns.new(1, seconds: @seconds)
    turns.go
    ask(left, turns)
    Process.wait(pid)
    turns.result(@asked)
  end

  private

  def ask(socket, turns)
    turns.ready
    buffer = +""
    bytes = 0
    until turns.over?
      @asked += 1
      socket.write(MESSAGE)
      bytes += socket.readpartial(SIZE, buffer).bytesize
      turns.first if bytes == SIZE
    end
    socket.close
    turns.last(bytes / SIZE)
  end

  def answer(socket)
    buffer = +""
    loop { socket.write(socket.readpartial(SIZE, buffer)) }
  rescue EOFError
    socket.close
  end
end
