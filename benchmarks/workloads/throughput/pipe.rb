# frozen_string_literal: true

require_relative "../support/repeating"
require_relative "../support/tally"

# 50 pairs of fibers, each with a pipe: one fiber writes messages of 1 KiB, the other reads them. A pipe holds 64 of
# them, so most operations succeed at once. This shows how a scheduler divides time between fibers that need not wait,
# and what it costs when they must.
#
# An operation is a message that was read. The bare limit is two processes with one pipe between them, on the same CPU.
class Pipe
  include Repeating

  SIZE = 1024
  MESSAGE = ("x" * SIZE).freeze

  def initialize(pairs: 50, seconds: 1)
    @pairs = pairs
    @seconds = seconds * SCALE
  end

  def once(contestant)
    @written = 0
    tally = Tally.new(@pairs, seconds: @seconds)
    contestant.run do
      @pairs.times do
        reader, writer = IO.pipe
        Fiber.schedule { write(writer, tally) }
        Fiber.schedule { read(reader, tally) }
      end
      tally.start
    end
    tally.result(@written)
  end

  def bare
    @written = 0
    reader, writer = IO.pipe
    tally = Tally.new(1, seconds: @seconds)
    tally.start
    from_child, to_parent = IO.pipe
    pid = fork do
      write(writer, tally)
      to_parent.write(@written)
    end
    [writer, to_parent].each(&:close)
    read(reader, tally)
    Process.wait(pid)
    tally.result(Integer(from_child.read))
  end

  private

  def write(writer, tally)
    tally.wait_for_start
    until tally.over?
      writer.write(MESSAGE)
      @written += 1
    end
    writer.close
  end

  def read(reader, tally)
    buffer = +""
    bytes = 0
    while reader.read(SIZE, buffer)
      tally.first_done if bytes.zero?
      bytes += buffer.bytesize
    end
    reader.close
    tally.finished(bytes / SIZE)
  end
end
