# frozen_string_literal: true

# Records how every fiber of a stress run ended.
class Ledger
  # A fiber with its expected and its actual end.
  Entry = Struct.new(:kind, :expected, :fiber, :begun, :ensured, :outcome)

  # The error that the program raises into fibers.
  class Poke < StandardError; end

  attr_reader :entries

  def initialize
    @entries = []
    @complaints = []
    @checks = Hash.new(0)
  end

  # Runs the block in a new fiber, whose end must be `:ended`, `:raised` or `:killed`.
  def fiber(kind, expected = :ended, by: YieldingFiber)
    entry = Entry.new(kind, expected, nil, 0, 0, nil)
    @entries << entry
    entry.fiber = by.schedule { follow(entry) { yield entry } }
    entry
  end

  # Records a comparison, and a complaint if it fails.
  def check(kind, actual, expected)
    @checks[kind] += 1
    complain("#{kind}: #{actual.inspect} instead of #{expected.inspect}") unless actual == expected
  end

  def complain(text)
    @complaints << text
  end

  # The numbers of fibers and of checks, by kind.
  def counts
    @entries.map(&:kind).tally.merge(@checks.transform_keys { |kind| :"#{kind} checked" })
  end

  # Everything that was wrong.
  def complaints
    @complaints + @entries.filter_map { |entry| fault(entry) }
  end

  private

  def follow(entry)
    entry.begun += 1
    yield
    entry.outcome = :ended
  rescue Poke
    entry.outcome = :raised
  rescue StandardError, SystemStackError => e
    entry.outcome = e
  ensure
    entry.ensured += 1
  end

  def fault(entry)
    # No rescue handles a kill.
    outcome = entry.outcome || :killed
    return if [outcome, entry.begun, entry.ensured, entry.fiber.alive?] == [entry.expected, 1, 1, false]

    outcome = outcome.full_message(highlight: false) if outcome.is_a?(Exception)
    "#{entry.kind}: #{outcome} instead of #{entry.expected}, begun #{entry.begun} times, " \
      "ensured #{entry.ensured} times, #{entry.fiber.inspect}"
  end
end
