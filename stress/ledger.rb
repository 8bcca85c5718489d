# frozen_string_literal: true

# What became of every fiber of a stress run.
class Ledger
  # A fiber that has been accounted for.
  Entry = Struct.new(:kind, :expected, :fiber, :begun, :ensured, :outcome)

  # What the program raises into fibers.
  class Poke < StandardError; end

  attr_reader :entries

  def initialize
    @entries = []
    @complaints = []
    @checks = Hash.new(0)
  end

  # Runs the block in a new fiber, which is to be `:ended`, `:raised` or `:killed`.
  def fiber(kind, expected = :ended, by: YieldingFiber)
    entry = Entry.new(kind, expected, nil, 0, 0, nil)
    @entries << entry
    entry.fiber = by.schedule { follow(entry) { yield entry } }
    entry
  end

  # Notes that something had to be so.
  def check(kind, actual, expected)
    @checks[kind] += 1
    complain("#{kind}: #{actual.inspect} instead of #{expected.inspect}") unless actual == expected
  end

  def complain(text)
    @complaints << text
  end

  # How many fibers of each kind there were, and what was looked at.
  def counts
    @entries.map(&:kind).tally.merge(@checks.transform_keys { |kind| :"#{kind} checked" })
  end

  # What was wrong.
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
    # A kill passes by every rescue.
    outcome = entry.outcome || :killed
    return if [outcome, entry.begun, entry.ensured, entry.fiber.alive?] == [entry.expected, 1, 1, false]

    outcome = outcome.full_message(highlight: false) if outcome.is_a?(Exception)
    "#{entry.kind}: #{outcome} instead of #{entry.expected}, begun #{entry.begun} times, " \
      "ensured #{entry.ensured} times, #{entry.fiber.inspect}"
  end
end
