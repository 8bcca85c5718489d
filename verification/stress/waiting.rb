# frozen_string_literal: true

require "tempfile"
require "timeout"
require_relative "computing"

# Fibers that wait for each other, and compute in between. Each method gets the world in which its fibers run.
module Waiting
  ITEMS = 30
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

  # Lines of several fibers in one file. None may be torn.
  def files(world)
    file = Tempfile.new("heddle-stress")
    fibers = 3
    fibers.times do |number|
      world.ledger.fiber(:file) { ITEMS.times { |item| file.write("#{number} #{item} #{"x" * 50}\n") } }
    end
    world.afterwards do
      file.flush
      lines = File.readlines(file.path, chomp: true).map { |line| line.split[0, 2].map(&:to_i) }
      world.ledger.check(:file, lines.sort, [*0...fibers].product([*0...ITEMS]))
      file.close!
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

  ALL = %i[sleepers queues pipes files timeouts].freeze
end
