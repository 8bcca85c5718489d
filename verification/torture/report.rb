# frozen_string_literal: true

require "fileutils"

module Torture
  # How a test ended with Heddle in its file's process (first) and, if it did not pass there, alone in another one
  # (last), and how it ends on plain Ruby (nil if that is unknown).
  Comparison = Data.define(:backend, :first, :last, :plain) do
    def test = last.test
    def file = last.file
    def outcome = last.outcome
    def differs? = !last.passed? && outcome != plain
    def same_failure? = !last.passed? && outcome == plain
    # The machine was busy, or the fault is intermittent.
    def flaky? = !first.passed? && last.passed?

    def name = "#{file} #{test}"
    def headline = "#{outcome.upcase} on #{backend}, #{plain || "unknown"} on plain Ruby: #{name}"
  end

  # The report on one backend.
  class Report
    SLOWEST = 5
    # Characters of a message.
    EXCERPT = 3000

    attr_reader :backend

    # @param comparisons [Array<Comparison>]
    # @param known [KnownDifferences]
    # @param listed [Boolean] whether only what is listed was run
    def initialize(backend, comparisons, known, listed:)
      @backend = backend
      @comparisons = comparisons.sort_by { |comparison| [comparison.file, comparison.test] }
      @known = known
      @listed = listed
    end

    def success? = @comparisons.any? && differing.empty?

    def lines
      [
        *differing.flat_map { |comparison| ["", comparison.headline, excerpt(comparison.last.message)] },
        *flaky.map { |comparison| "Passed only when run again, alone, on #{@backend}: #{comparison.name}" },
        *(out_of_date if @listed),
        "",
        summary,
        *differing.map { |comparison| "  #{comparison.headline}" }
      ]
    end

    # Writes the whole report, with all outcomes, leaks and durations.
    def write(path)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, [*lines, "", *flaky_messages, "", *leaks, "", *slowest, "", *all].join("\n"))
    end

    private

    def differing = @comparisons.select(&:differs?)
    def flaky = @comparisons.select(&:flaky?)

    def summary
      outcomes = { "passed" => @comparisons.count { |comparison| comparison.last.passed? } }
      @comparisons.select(&:same_failure?).group_by(&:outcome).each do |outcome, same|
        outcomes["#{outcome} as on plain Ruby"] = same.size
      end
      counts = outcomes.map { |outcome, count| "#{count} #{outcome}" }
      "#{@backend}: #{@comparisons.size} tests: #{counts.join(", ")}, #{flaky.size} of them when run again, " \
        "#{@known.tests.size} listed, #{differing.size} differ"
    end

    # Entries of the list that no difference justifies any more.
    def out_of_date
      same = @comparisons.reject(&:differs?).map(&:test)
      missing = @known.tests - @comparisons.map(&:test)
      [*same.map { |test| "Listed, but as on plain Ruby on #{@backend}: #{test}" },
       *missing.map { |test| "Listed, but in none of the files: #{test}" }]
    end

    def excerpt(message)
      message.to_s.dup.force_encoding("UTF-8").scrub.slice(0, EXCERPT)
    end

    def flaky_messages
      flaky.flat_map { |comparison| ["FLAKY #{comparison.name}", excerpt(comparison.first.message)] }
    end

    def leaks
      @comparisons.flat_map { |comparison| comparison.first.leaks.map { |leak| "LEAK #{comparison.name}: #{leak}" } }
    end

    def slowest
      @comparisons.max_by(SLOWEST) { |comparison| comparison.first.seconds }
                  .map { |comparison| "#{comparison.first.seconds.round(1)} s for #{comparison.name}" }
    end

    def all
      @comparisons.map do |comparison|
        "#{comparison.outcome} #{comparison.plain} #{comparison.first.seconds.round(2)} #{comparison.name}"
      end
    end
  end
end
