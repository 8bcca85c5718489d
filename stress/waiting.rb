# frozen_string_literal: true

require "monitor"
require "timeout"
require_relative "computing"

# Fibers that wait for each other, and compute between. Each is given the world that it lives in.
module Waiting
  ITEMS = 30
  ADDITIONS = 15
  NAP = 0.003
  BYTES = 20_000
  SOON = 0.004
  NEVER = 30

  module_function

  def sleepers(world)
    world.ledger.fiber(:sleeper, by: world.kind) do
      5.times { sleep(world.random.rand(NAP)) }
    end
  end

  def queues(world)
    queue = [Thread::Queue.new, Thread::SizedQueue.new(2)].sample(random: world.random)
    producers = 3
    sum = 0
    world.ledger.fiber(:consumer) { (producers * ITEMS).times { sum += queue.pop } }
    producers.times do
      world.ledger.fiber(:producer) do
        ITEMS.times do |item|
          queue << item
          Computing.fibonacci(8)
        end
      end
    end
    world.afterwards { world.ledger.check(:queue, sum, producers * ITEMS * (ITEMS - 1) / 2) }
  end

  def mutexes(world)
    add_under(world, :mutex, Thread::Mutex.new, :synchronize)
  end

  def monitors(world)
    add_under(world, :monitor, Monitor.new, :synchronize) { |monitor| monitor.synchronize { Computing.fibonacci(5) } }
  end

  # Others of the thread must not come in between, without a lock.
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

  def pipes(world)
    reader, writer = IO.pipe
    world.ledger.fiber(:writer) do
      (BYTES / 100).times do
        writer.write("x" * 100)
        Computing.fibonacci(6)
      end
    ensure
      writer.close
    end
    world.ledger.fiber(:reader, by: world.kind) do
      world.ledger.check(:pipe, reader.read.bytesize, BYTES)
    ensure
      reader.close
    end
  end

  def timeouts(world)
    world.ledger.fiber(:timeout) do
      world.ledger.check(:computing_timeout, timed_out { loop { Computing.fibonacci(5) } }, :timed_out)
      world.ledger.check(:waiting_timeout, timed_out { sleep NEVER }, :timed_out)
      world.ledger.check(:no_timeout, timed_out(NEVER) { Computing.fibonacci(12) }, 144)
      nested = timed_out(NEVER) { timed_out { loop { Computing.fibonacci(5) } } }
      world.ledger.check(:nested_timeout, nested, :timed_out)
    end
  end

  def timed_out(seconds = SOON, &)
    ensured = 0
    begin
      result = Timeout.timeout(seconds) do
        yield
      ensure
        ensured += 1
      end
    rescue Timeout::Error
      result = :timed_out
    end
    ensured == 1 ? result : "ensured #{ensured} times"
  end

  ALL = %i[sleepers queues mutexes monitors critical_sections shared_counter pipes timeouts].freeze
end
