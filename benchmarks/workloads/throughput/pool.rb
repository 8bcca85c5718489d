# frozen_string_literal: true

require_relative "../support/repeating"
require_relative "../support/tally"

# 40 fibers share 10 connections: each takes one, uses it for a millisecond, as a quick query does, gives it back, and
# waits a millisecond for something else. If a sleep and a hand-over cost nothing, that is 10,000 uses per second;
# `share_of_ideal` is the part of it that was reached.
#
# Without that other wait a fiber would pop what it has just pushed, and the others would starve under every scheduler.
#
# Beside them 10 fibers wait a millisecond for a connection that never comes. An operation is a use or such a wait. It
# counts as done if the connection has come, or if the wait has ended without one, and not before its time.
class Pool
  include Repeating

  USE = 0.001
  LIMIT = 10

  def initialize(fibers: 40, connections: 10, waiters: 10, seconds: 1)
    @fibers = fibers
    @connections = connections
    @waiters = waiters
    @seconds = seconds * SCALE
  end

  def measure(contestant)
    @uses = 0
    all = super
    uses = @uses / all[:seconds]
    all.merge(rate: uses, share_of_ideal: uses * USE / @connections, cpu_us: all[:cpu_seconds] / @uses * 1e6)
  end

  def once(contestant)
    pool = Queue.new(1..@connections)
    empty = Queue.new
    tally = Tally.new(@fibers + @waiters, seconds: @seconds)
    contestant.run do
      @fibers.times { Fiber.schedule { tally.repeat { @uses += 1 if use(pool) } } }
      @waiters.times { Fiber.schedule { tally.repeat { times_out?(empty) } } }
      tally.start
    end
    tally.result
  end

  private

  # Whether the wait has ended without a connection, and not before its time.
  def times_out?(empty)
    begun = Clock.now
    empty.pop(timeout: USE).nil? && Clock.now - begun >= USE
  end

  # Returns the connection that was used, or nil if none has come.
  def use(pool)
    connection = pool.pop(timeout: LIMIT) or return
    sleep(USE)
    pool.push(connection)
    sleep(USE)
    connection
  end
end
