# frozen_string_literal: true

require_relative "computing"
require_relative "ledger"

# Fibers that never end by themselves, and fibers that end them by `Fiber#raise` or `Fiber#kill`.
module Interrupting
  VICTIMS = {
    computing: -> { loop { Computing.fibonacci(7) } },
    sleeping: -> { loop { sleep 30 } },
    napping: -> { loop { sleep 0.0005 } },
    popping: -> { Thread::Queue.new.pop },
    locking: -> { Thread::Mutex.new.synchronize { loop { Computing.fibonacci(6) } } },
    critical: lambda {
      loop { Heddle.without_preemption { Computing.fibonacci(8) } }
    },
    allocating: -> { loop { Array.new(50, &:to_s) } },
    matching: -> { loop { Computing::PATTERN.match?(Computing::SUBJECT) } },
    in_timeout: -> { Timeout.timeout(30) { loop { Computing.fibonacci(7) } } },
    generating: lambda {
      numbers = Enumerator.new { |yielder| loop { yielder << Computing.fibonacci(6) } }
      loop { numbers.next }
    }
  }.freeze
  # In Ruby, Fiber#kill of a fiber that has resumed another fiber kills neither.
  RAISED_ONLY = %i[generating].freeze
  # The longest time of a victim in seconds.
  LATEST = 0.01

  module_function

  def victims(world)
    name = VICTIMS.keys.sample(random: world.random)
    killed = world.random.rand(2).zero? && !RAISED_ONLY.include?(name)
    victim = world.ledger.fiber(:"#{name}_victim", killed ? :killed : :raised) { VICTIMS.fetch(name).call }
    raiser(world, victim.fiber, killed)
  end

  def raiser(world, victim, kills)
    pause = world.random.rand(LATEST)
    world.ledger.fiber(:raiser, by: world.kind) do
      sleep(pause)
      kills ? victim.kill : victim.raise(Ledger::Poke)
    end
  end
end
