# frozen_string_literal: true

require "tempfile"
require_relative "../support/repeating"
require_relative "../support/turns"

# 500 fibers write lines to one log, each line under a `Mutex`, as every logger does it. A regular file is always
# ready, so nobody ever has to wait but for the lock: whoever has the turn could keep it to its end, and on most
# schedulers does. The rate alone would reward that; `starved` says how many paid for it.
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
      turns = Turns.new(@fibers, seconds: @seconds)
      contestant.run do
        @fibers.times { Fiber.schedule { write(log, mutex, turns) } }
        turns.go
      end
      turns.result(log.size / LINE.bytesize)
    end
  end

  private

  def write(log, mutex, turns)
    turns.ready
    count = 0
    until turns.over?
      mutex.synchronize { log.write(LINE) }
      count += 1
      turns.first if count == 1
    end
    turns.last(count)
  end
end
