# frozen_string_literal: true

require "tmpdir"
require_relative "../support/repeating"
require_relative "../support/tally"

# 100 fibers read whole files of 64 KiB, which are in the page cache: the cost of a read that need not wait. A file is
# always ready, as in `mutex_io`, so this also shows whether every fiber gets to run.
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
      tally = Tally.new(@fibers, seconds: @seconds)
      contestant.run do
        @fibers.times { |number| Fiber.schedule { read(paths[number % FILES], tally) } }
        tally.start
      end
      tally.result(@read)
    end
  end

  private

  def read(path, tally)
    tally.wait_for_start
    bytes = 0
    until tally.over?
      bytes += File.read(path).bytesize
      @read += 1
      tally.first_done if bytes == SIZE
    end
    tally.finished(bytes / SIZE)
  end
end
