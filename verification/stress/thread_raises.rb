# frozen_string_literal: true

require_relative "computing"
require_relative "ledger"

# Raises from one thread in another, whose fibers compute and wait. Each exception must arrive once, in one of the
# fibers or in the root fiber.
class ThreadRaises
  FIBERS = 4
  # Seconds in which an exception must arrive.
  LIMIT = 10

  attr_reader :complaints

  def initialize(shots:, ticker:)
    @shots = shots
    @ticker = ticker
    @hits = Thread::Queue.new
    @ready = Thread::Queue.new
    @over = false
    @standing = 0
    @complaints = []
  end

  def run
    target = Thread.new { live }
    target.report_on_exception = false
    (FIBERS + 1).times { @ready.pop }
    @shots.times { |shot| shoot(target, shot) }
    @over = true
    target.join
    @complaints << "Thread#raise: #{@hits.size} arrived too often" unless @hits.empty?
  end

  private

  def shoot(target, shot)
    target.raise(Ledger::Poke, shot.to_s)
    hit = @hits.pop(timeout: LIMIT)
    @complaints << "Thread#raise: #{hit.inspect} arrived instead of #{shot}" unless hit == shot
  end

  def live
    Fiber.set_scheduler(Heddle::Scheduler.new(preempt: :all, ticker: @ticker))
    FIBERS.times { |index| Fiber.schedule { stand(index) } }
    # A fiber may be preempted before its first line, and the root's loop lets none of them run.
    Fiber.scheduler.yield until @standing == FIBERS
    ready = false
    catch_hits do
      # Not before the root catches what is raised in it.
      ready ||= @ready << :root
      Thread.pass until @over
    end
  end

  def stand(index)
    @standing += 1
    @ready << index
    catch_hits do
      until @over
        Computing.fibonacci(8)
        sleep 0.0002 if index.zero?
      end
    end
  end

  # A hit is reported within the `begin`, as the next exception may be raised right after that.
  def catch_hits
    hit = nil
    begin
      @hits << hit if hit
      yield
    rescue Ledger::Poke => e
      hit = e.message.to_i
      retry
    end
  end
end
