# frozen_string_literal: true

require_relative "closing"
require_relative "computing"
require_relative "interrupting"
require_relative "ledger"
require_relative "locking"
require_relative "requiring"
require_relative "resuming"
require_relative "waiting"

# One thread with its scheduler and its fibers.
class World
  # A number that the fibers of several threads add to.
  class Shared
    attr_reader :total

    def initialize
      @mutex = Thread::Mutex.new
      @total = 0
    end

    def add
      @mutex.synchronize do
        before = @total
        yield
        @total = before + 1
      end
    end
  end

  QUANTUMS = [0.001, 0.003, 0.01].freeze

  attr_reader :ledger, :random, :shared, :kind

  def initialize(seed, shared, size:, preempt:, ticker:)
    @random = Random.new(seed)
    @shared = shared
    @size = size
    @options = { preempt: preempt || %i[yielding all].sample(random: @random), ticker:,
                 quantum: QUANTUMS.sample(random: @random) }
    @ledger = Ledger.new
    @afterwards = []
  end

  # Runs the fibers on the calling thread.
  def run
    Fiber.set_scheduler(Heddle::Scheduler.new(**@options))
    begin
      @size.times do
        @kind = [Fiber, YieldingFiber].sample(random: @random)
        populate
      end
    ensure
      Fiber.set_scheduler(nil)
    end
    @afterwards.each(&:call)
  end

  # Adds a check for the time when all fibers have ended.
  def afterwards(&check)
    @afterwards << check
  end

  private

  def populate
    case @random.rand(20)
    when 0..7 then compute(Computing)
    when 8..11 then compute(Resuming)
    when 12..15 then start_group([Waiting, Locking].sample(random: @random))
    when 16 then Requiring.requires(self)
    when 17, 18 then start_group(Closing)
    else Interrupting.victims(self)
    end
  end

  def start_group(groups)
    groups.public_send(groups::ALL.sample(random: @random), self)
  end

  def compute(works)
    name = works::ALL.sample(random: @random)
    seed = @random.rand(1 << 32)
    @ledger.fiber(name) { works.public_send(name, @ledger, Random.new(seed)) }
  end
end
