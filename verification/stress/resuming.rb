# frozen_string_literal: true

require_relative "computing"

# Fibers that compute and resume other fibers. The values and exceptions that they pass must arrive, whenever a tick
# comes.
module Resuming
  ITEMS = 40
  ROUND_TRIPS = 500

  # Functions in which a fiber can be preempted, and which yield as well.
  SOURCES = {
    structs: -> { Computing::Point.new(1, 2).each },
    lines: -> { StringIO.new("a\nb\nc\n").each_line },
    files: -> { File.foreach(__FILE__) },
    pairs: -> { { a: 1, b: 2 }.each_pair },
    steps: -> { 1.step(by: 3, to: 30) },
    times: -> { 10.times },
    lazy: -> { [1, 2, 3].cycle.lazy.map { |number| number * 2 }.first(9).each }
  }.freeze

  # The error that a fiber raises into its resumer.
  class Passed < StandardError; end

  module_function

  def generator(ledger, _)
    numbers = Enumerator.new do |yielder|
      ITEMS.times { |number| yielder << (Computing.fibonacci(9) && number) }
    end
    sum = 0
    loop { sum += numbers.next }
    ledger.check(:generator, sum, ITEMS * (ITEMS - 1) / 2)
  end

  def external_each(ledger, _)
    letters = ("a".."z").each
    ledger.check(:external_each, Array.new(26) { Computing.fibonacci(9) && letters.next }.join, [*"a".."z"].join)
  end

  def external_functions(ledger, _)
    SOURCES.each do |name, source|
      expected = source.call.to_a
      taken = source.call
      ledger.check(name, Array.new(expected.size) { taken.next }, expected)
    end
  end

  def yielding(ledger, _)
    pass_through(ledger, :yielding, YieldingFiber)
  end

  def plain(ledger, _)
    pass_through(ledger, :plain, Fiber)
  end

  def pass_through(ledger, kind, type)
    fiber = type.new do |number|
      ROUND_TRIPS.times { number = Fiber.yield(number + 1) }
      Computing.fibonacci(12)
      :over
    end
    number = 0
    ROUND_TRIPS.times { number = fiber.resume(number) }
    ledger.check(kind, [number, fiber.resume(0), fiber.alive?], [ROUND_TRIPS, :over, false])
  end

  def errors(ledger, _)
    passed = Array.new(ITEMS) do |number|
      Fiber.new { raise Passed, (Computing.fibonacci(9) && number).to_s }.resume
    rescue Passed => e
      e.message.to_i
    end
    ledger.check(:errors, passed, [*0...ITEMS])
  end

  # Resuming a fiber that waits must raise, and have no other effect.
  def refused(ledger, _)
    begun = false
    fiber = YieldingFiber.new { (begun = true) && sleep(0.001) && Computing.fibonacci(12) }
    resumer = ledger.fiber(:resumer) { ledger.check(:refused_value, fiber.resume, 144) }
    Computing.fibonacci(5) until begun
    refusals = 0
    begin
      fiber.resume
    rescue FiberError
      refusals += 1
      retry if resumer.outcome.nil? && refusals < 2
    end
    ledger.check(:refused, refusals.positive?, true)
  end

  # A fiber that is resumed in a critical section is part of it.
  def critical(ledger, _)
    inside = 0
    2.times do
      ledger.fiber(:critical_resume) do
        Heddle.without_preemption do
          ledger.check(:critical_resume, inside += 1, 1)
          YieldingFiber.new { Computing.fibonacci(16) }.resume
          inside -= 1
        end
      end
    end
  end

  ALL = %i[generator external_each external_functions yielding plain errors refused critical].freeze
end
