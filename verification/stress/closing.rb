# frozen_string_literal: true

require "socket"
require "timeout"
require_relative "computing"

# Connections that are closed during an operation, so that the next connections get their descriptor numbers. Threads
# share the numbers, too. Each connection has bytes of its own, so that any other byte is detected.
module Closing
  ROUNDS = 5
  SOON = 0.003
  SHORT = 50
  # More than a socket's buffers hold.
  LONG = 1_000_000

  module_function

  # Connections that are used to their end.
  def exchanges(world)
    ROUNDS.times do
      size = world.random.rand(1..200_000)
      world.ledger.fiber(:exchange) { prove(world, size) }
    end
  end

  # A read that has received a part of its data is closed, timed out or killed.
  def abandoned_reads(world)
    ROUNDS.times do
      ends = world.random.rand(4)
      world.ledger.fiber(:abandoned_read) do
        one, other = UNIXSocket.pair
        one.write("r" * SHORT)
        reader = Fiber.schedule { read_partly(world, other) }
        end_by(ends, reader, other)
        [one, other].each(&:close)
        prove(world, SHORT * 4)
      end
    end
  end

  # A write that has sent a part of its data is closed, timed out or killed.
  def abandoned_writes(world)
    ROUNDS.times do
      ends = world.random.rand(4)
      world.ledger.fiber(:abandoned_write) do
        one, other = UNIXSocket.pair
        writer = Fiber.schedule { ended_by_close { one.write("w" * LONG) } }
        end_by(ends, writer, one)
        one.close
        prove(world, SHORT * 4)
        world.ledger.check(:abandoned_write, other.read.delete("w"), "")
        other.close
      end
    end
  end

  # Pipes whose readers are closed between two lines.
  def abandoned_lines(world)
    ROUNDS.times do
      world.ledger.fiber(:abandoned_line) do
        reader, writer = IO.pipe
        lines = []
        reading = Fiber.schedule { ended_by_close { reader.each_line { |line| lines << line } } }
        writer.write("one\ntwo\nhalf a li")
        sleep(SOON)
        end_by(0, reading, reader)
        writer.close
        prove(world, SHORT)
        world.ledger.check(:abandoned_line, lines - %W[one\n two\n], [])
      end
    end
  end

  # A new connection, which has the number of a closed one, carries its own bytes only.
  def prove(world, size)
    text = "#{world.object_id} #{world.random.rand(1 << 32)} ".then { |tag| (tag * ((size / tag.size) + 1))[0, size] }
    one, other = UNIXSocket.pair
    writer = Fiber.schedule do
      one.write(text)
      one.close
    end
    received = other.read
    other.close
    Computing.fibonacci(5) while writer.alive? && sleep(0)
    world.ledger.check(:own_bytes, [received.bytesize, received.sum(32)], [size, text.sum(32)])
  end

  # The end may come before `received` is assigned.
  def read_partly(world, socket)
    received = +""
    ended_by_close { loop { received << socket.readpartial(SHORT / 3) } }
  ensure
    world.ledger.check(:abandoned_read, received.to_s.delete("r"), "")
  end

  # Ends the operation by a fiber, a thread, a timeout or a kill.
  def end_by(ends, fiber, socket)
    sleep(SOON)
    case ends
    when 0 then socket.close
    when 1 then Thread.new { socket.close }.join
    when 2 then fiber.alive? && fiber.raise(Timeout::Error, "stress")
    else fiber.kill
    end
  end

  def ended_by_close
    yield
  rescue IOError, Errno::EPIPE, Timeout::Error
    # The operation ended as expected.
  end

  ALL = %i[exchanges abandoned_reads abandoned_writes abandoned_lines].freeze
end
