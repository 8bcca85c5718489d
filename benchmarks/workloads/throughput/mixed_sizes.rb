# frozen_string_literal: true

require "socket"
require_relative "../support/repeating"
require_relative "../support/tally"

# 20 TCP connections within the process: a fiber sends a message and reads until it is back, another one echoes what it
# reads. The messages of a connection have each of the sizes in turn. A large one fills the socket's buffer several
# times, so its writer and its reader wait for each other; a small one is there with one read.
#
# An operation is a message that came back whole.
class MixedSizes
  include Repeating

  KIB = 1024
  SIZES = [64, KIB, 16 * KIB, 64 * KIB, 256 * KIB].freeze
  # What one read asks for, as Net::HTTP's and `IO.copy_stream`'s.
  CHUNK = 16 * KIB

  def initialize(connections: 20, seconds: 1, sizes: SIZES)
    @connections = connections
    @seconds = seconds * SCALE
    @messages = sizes.map { |size| "x" * size }
  end

  def once(contestant)
    @sent = 0
    tally = Tally.new(@connections, seconds: @seconds)
    listener = TCPServer.new("127.0.0.1", 0)
    contestant.run do
      @connections.times do
        left = TCPSocket.new("127.0.0.1", listener.local_address.ip_port)
        right = listener.accept
        # As web servers and clients do. Otherwise the end of a message waits for an acknowledgement, 40 ms.
        [left, right].each { |socket| socket.setsockopt(:TCP, :NODELAY, true) }
        Fiber.schedule { echo(right) }
        Fiber.schedule { ask(left, tally) }
      end
      tally.start
    end
    tally.result(@sent)
  ensure
    listener&.close
  end

  private

  def ask(socket, tally)
    tally.wait_for_start
    whole = 0
    until tally.over?
      @messages.each do |message|
        @sent += 1
        whole += 1 if exchange(socket, message) == message.bytesize
        tally.first_done if whole == 1
      end
    end
    socket.close
    tally.finished(whole)
  end

  # Sends the message, and returns how many of its bytes have come back.
  def exchange(socket, message)
    size = message.bytesize
    if size <= CHUNK
      socket.write(message)
      return read(socket, size)
    end

    # In a fiber of its own, as the buffers have no room for what neither side reads.
    written = Queue.new
    Fiber.schedule { written.push(socket.write(message)) }
    read(socket, size).tap { written.pop }
  end

  def read(socket, size)
    buffer = +""
    bytes = 0
    bytes += socket.readpartial(CHUNK, buffer).bytesize while bytes < size
    bytes
  end

  def echo(socket)
    buffer = +""
    loop { socket.write(socket.readpartial(CHUNK, buffer)) }
  rescue EOFError
    socket.close
  end
end
