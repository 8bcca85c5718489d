# frozen_string_literal: true

require_relative "computing"

# Threads that are killed while their fibers compute. Each must end, and run each fiber's `ensure` once.
class ThreadKills
  FIBERS = [1, 3].freeze
  # Seconds in which a thread must have ended.
  LIMIT = 10

  attr_reader :complaints

  def initialize(kills:, ticker:)
    @kills = kills
    @ticker = ticker
    @complaints = []
  end

  def run
    @kills.times { |number| kill(FIBERS[number % FIBERS.size]) }
  end

  private

  def kill(fibers)
    begun = Thread::Queue.new
    ensured = 0
    victim = Thread.new do
      Heddle.run(ticker: @ticker) do
        fibers.times { YieldingFiber.schedule { compute(begun) { ensured += 1 } } }
        sleep
      end
    end
    fibers.times { begun.pop }
    ended = victim.kill.join(LIMIT)
    @complaints << "Thread#kill: #{fibers} fibers continue" unless ended
    @complaints << "Thread#kill: #{ensured} of #{fibers} ensured" if ended && ensured != fibers
  end

  def compute(begun)
    begun << true
    loop { Integer.sqrt(2) }
  ensure
    yield
  end
end
