# frozen_string_literal: true

require "tmpdir"
require_relative "../support/repeating"
require_relative "../support/turns"

# 100 fibers read whole files of 64 KiB, which the kernel has in its cache: what it costs to read what needs no
# waiting. A file is always ready, as in `mutex_io`, so this asks who gets a turn at all, too.
#
# An operation is a file that was read from its first byte to its last.
class FileRead
  include Repeating

  SIZE = 64 * 1024
  FILES = 10

  def initialize(fibers: 100, seconds: 1)
    @fibers = fibers
    @seconds = seconds * SCALE
  end

  def once(contestant)
    Dir.mktmpdir("heddle-file-read") do |folder|
      paths = Array.new(FILES) { |number| "#{folder}/#{number}" }
      paths.each { |path| File.write(path, "x" * SIZE) }
      @read = 0
      turns = Turns.new(@fibers, seconds: @seconds)
      contestant.run do
        @fibers.times { |number| Fiber.schedule { read(paths[number % FILES], turns) } }
        turns.go
      end
      turns.result(@read)
    end
  end

  private

  def read(path, turns)
    turns.ready
    bytes = 0
    until turns.over?
      bytes += File.read(path).bytesize
      @read += 1
      turns.first if bytes == SIZE
    end
    turns.last(bytes / SIZE)
  end
end
