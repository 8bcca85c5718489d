# frozen_string_literal: true

require_relative "clock"

# Counts what the fibers of one run have done, from the start to the last one's end, and how many of them were starved.
#
# With `seconds:` the fibers go on until `over?`; starved is who hadn't done a single operation by then. Without, each
# does a fixed number; starved is who had done none when the first fiber was through. A scheduler that lets one fiber
# go on as long as its operations succeed at once is quick and leaves everybody else out: that number belongs beside its
# rate.
#
# A fiber counts for itself, and tells of its first operation and of its end only: a shared counter in each operation
# would be a good part of what is measured.
class Turns
  def initialize(fibers, seconds: nil)
    @fibers = fibers
    @begun = 0
    @done = 0
    @ended = 0
    @starved = nil
    @started = Clock.now
    @seconds = seconds
    @deadline = @started + seconds if seconds
    @gate = Queue.new
  end

  # Keeps a fiber waiting until `go`, when all have been scheduled: a spawner that waits for its turn among those it has
  # spawned is slow to spawn them all, and that is not what starved means here. The time begins with `go`.
  def ready = @gate.pop

  def go
    @started = Clock.now
    @deadline &&= @started + @seconds
    @gate.close
  end

  def over? = Clock.now >= @deadline

  # A fiber has done its first operation.
  def first
    @begun += 1 unless @deadline && over?
  end

  # A fiber has ended; says how many operations it has counted itself.
  def last(operations)
    @starved ||= @fibers - @begun
    @done += operations
    @ended += 1
    @stopped = Clock.now
  end

  def result(expected)
    { operations: @done, expected:, ended: @ended, fibers: @fibers, seconds: @stopped - @started,
      starved: @deadline ? @fibers - @begun : @starved }
  end
end
