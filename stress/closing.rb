# frozen_string_literal: true

require "socket"
require "timeout"
require_relative "computing"

# Connections that are closed while something is under way on them, so that their numbers go to the next ones: of any
# world, as all threads share the numbers. Every connection's bytes are its own, and any other that arrives is noticed.
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

  # A read of which a part has come is closed, timed out or killed.
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

  # A write of which a part has gone is closed, timed out or killed.
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

  # A fresh connection, which has got the number of one that was closed, carries its own bytes and no others.
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

  def read_partly(world, socket)
    received = +""
    ended_by_close { loop { received << socket.readpartial(SHORT / 3) } }
  ensure
    world.ledger.check(:abandoned_read, received.delete("r"), "")
  end

  # A fiber, a thread, a time-out or a kill ends it.
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
    # As it should be.
  end

  ALL = %i[exchanges abandoned_reads abandoned_writes abandoned_lines].freeze
end
