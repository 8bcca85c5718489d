# frozen_string_literal: true

require "monitor"
require_relative "computing"

# Fibers that exclude each other from shared state. Each method gets the world in which its fibers run.
module Locking
  ADDITIONS = 15
  MANY = 1_500

  module_function

  def mutexes(world)
    add_under(world, :mutex, Thread::Mutex.new, :synchronize)
  end

  def monitors(world)
    add_under(world, :monitor, Monitor.new, :synchronize) { |monitor| monitor.synchronize { Computing.fibonacci(5) } }
  end

  # Other fibers of the thread must not run in between, though there is no lock.
  def critical_sections(world)
    add_under(world, :critical, Heddle, :without_preemption) do |heddle|
      heddle.without_preemption { Computing.fibonacci(7) }
    end
  end

  def add_under(world, kind, guard, enter)
    total = 0
    fibers = 3
    fibers.times do
      world.ledger.fiber(kind) do
        ADDITIONS.times do
          guard.public_send(enter) do
            before = total
            Computing.fibonacci(10)
            yield guard if block_given?
            total = before + 1
          end
        end
      end
    end
    world.afterwards { world.ledger.check(kind, total, fibers * ADDITIONS) }
  end

  def shared_counter(world)
    world.ledger.fiber(:shared, by: world.kind) do
      ADDITIONS.times { world.shared.add { Computing.fibonacci(9) } }
    end
  end

  # Fibers that only lock and unlock.
  def locks(world)
    add_under_at_once(world, :lock, Thread::Mutex.new)
    add_under_at_once(world, :monitor_lock, Monitor.new)
  end

  def add_under_at_once(world, kind, guard)
    total = 0
    fibers = 2
    fibers.times do
      world.ledger.fiber(kind) { MANY.times { guard.synchronize { total += 1 } } }
    end
    world.afterwards { world.ledger.check(kind, total, fibers * MANY) }
  end

  ALL = %i[mutexes monitors critical_sections shared_counter locks].freeze
end
