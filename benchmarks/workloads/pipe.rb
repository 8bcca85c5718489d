# frozen_string_literal: true

require_relative "../support/repeating"
require_relative "../support/turns"

# 50 pairs of fibers, each with a pipe between them: one writes messages of 1 KiB, the other reads them. A pipe holds 64
# of them, so most operations succeed at once, and a scheduler shows how it shares the turn out between those who never
# have to wait, and what it costs when they do.
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
    turns = Turns.new(@pairs, seconds: @seconds)
    contestant.run do
      @pairs.times do
        reader, writer = IO.pipe
        Fiber.schedule { write(writer, turns) }
        Fiber.schedule { read(reader, turns) }
      end
      turns.go
    end
    turns.result(@written)
  end

  def bare
    @written = 0
    reader, writer = IO.pipe
    turns = Turns.new(1, seconds: @seconds)
    turns.go
    from_child, to_parent = IO.pipe
    pid = fork do
      write(writer, turns)
      to_parent.write(@written)
    end
    [writer, to_parent].each(&:close)
    read(reader, turns)
    Process.wait(pid)
    turns.result(Integer(from_child.read))
  end

  private

  def write(writer, turns)
    turns.ready
    until turns.over?
      writer.write(MESSAGE)
      @written += 1
    end
    writer.close
  end

  def read(reader, turns)
    buffer = +""
    bytes = 0
    while reader.read(SIZE, buffer)
      turns.first if bytes.zero?
      bytes += buffer.bytesize
    end
    reader.close
    turns.last(bytes / SIZE)
  end
end
