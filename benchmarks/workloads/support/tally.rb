# frozen_string_literal: true

require_relative "../../run/clock"

# Counts the operations of one run's fibers, from the start to the end of the last fiber, and the starved fibers.
#
# With `seconds:` the fibers repeat their operation until `over?`; a fiber is starved if it completed no operation by
# then. Without it, each fiber does a fixed number; a fiber is starved if it had completed none when the first fiber
# finished. A scheduler that never preempts a fiber whose operations succeed at once is quick and starves all others,
# so that number belongs beside its rate.
#
# Each fiber counts its own operations and reports only its first operation and its end. A counter that all fibers
# share would cost a good part of what is measured.
class Tally
  def initialize(fibers, seconds: nil)
    @fibers = fibers
    @begun = 0
    @tried = 0
    @done = 0
    @ended = 0
    @starved = nil
    @started = Clock.now
    @seconds = seconds
    @deadline = @started + seconds if seconds
    @gate = Queue.new
  end

  # Blocks a fiber until `start`, which is called once all fibers are scheduled. Otherwise the spawning fiber would
  # compete with the fibers that it has spawned, and slow spawning would be counted as starvation.
  def wait_for_start = @gate.pop

  def start
    @started = Clock.now
    @deadline &&= @started + @seconds
    @gate.close
  end

  def over? = Clock.now >= @deadline

  # What a fiber does whose operations may fail: repeats the block until `over?`. An operation was completed if the
  # block's value is true.
  def repeat
    wait_for_start
    tried = done = 0
    until over?
      tried += 1
      next unless yield

      done += 1
      first_done if done == 1
    end
    @tried += tried
    finished(done)
  end

  # A fiber has completed its first operation.
  def first_done
    @begun += 1 unless @deadline && over?
  end

  # A fiber has ended, after this many operations.
  def finished(operations)
    @starved ||= @fibers - @begun
    @done += operations
    @ended += 1
    @stopped = Clock.now
  end

  # `expected` is the number of operations that should have been completed: by default those tried by {repeat}.
  def result(expected = @tried)
    { operations: @done, expected:, ended: @ended, fibers: @fibers, seconds: @stopped - @started,
      starved: @deadline ? @fibers - @begun : @starved }
  end
end
