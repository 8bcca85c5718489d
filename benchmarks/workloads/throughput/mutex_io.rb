# frozen_string_literal: true

require "tempfile"
require_relative "../support/repeating"
require_relative "../support/tally"

# 500 fibers write lines to one log, each line under a `Mutex`, as loggers do. A regular file is always ready, so a
# fiber waits for the lock only. On most schedulers the first fiber writes all of its lines before the next one runs.
# The rate alone would reward that; `starved` counts the fibers that never ran.
#
# An operation is a line. The lines in the file are counted at the end.
class MutexIo
  include Repeating

  LINE = "#{"x" * 99}\n".freeze

  def initialize(fibers: 500, seconds: 1)
    @fibers = fibers
    @seconds = seconds * SCALE
  end

  def once(contestant)
    Tempfile.create("heddle-mutex-io") do |log|
      log.sync = true
      mutex = Mutex.new
      tally = Tally.new(@fibers, seconds: @seconds)
      contestant.run do
        @fibers.times { Fiber.schedule { write(log, mutex, tally) } }
        tally.start
      end
      tally.result(log.size / LINE.bytesize)
    end
  end

  private

  def write(log, mutex, tally)
    tally.wait_for_start
    count = 0
    until tally.over?
      mutex.synchronize { log.write(LINE) }
      count += 1
      tally.first_done if count == 1
    end
    tally.finished(count)
  end
end
