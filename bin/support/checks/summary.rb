# frozen_string_literal: true

module Checks
  # The last lines of bin/test: what ran, how long it took, what was left out and why.
  class Summary
    LAST_LINES = 40
    # How many faults of a part the end names.
    FAULTS = 5

    def self.opening(plan)
      seed = plan.all? ? "seed #{plan.seed} (to repeat: --seed #{plan.seed})" : "seed #{plan.seed}"
      "#{plan.parts.size} parts; logs in tmp/test; #{seed}"
    end

    def initialize(plan, results, not_begun, seconds:, left_behind:)
      @plan = plan
      @results = results
      @not_begun = not_begun
      @seconds = seconds
      @left_behind = left_behind
    end

    def to_s
      [*failures, "", *list("Skipped examples", skipped), *list("Left out", left_out),
       *(@plan.all? ? [] : list("bin/test --all adds", Plan::ALL_ADDS)),
       "", "bin/test#{" --all" if @plan.all?}: #{format_seconds(@seconds)}", *parts, "", what_ran,
       *list("Still running, now killed", @left_behind), *list("Failed", faults), verdict].join("\n")
    end

    # @return [Integer] the exit status
    def status = failed.empty? && @not_begun.empty? && @left_behind.empty? ? 0 : 1

    private

    # Again, because they have scrolled away.
    def failures
      with_logs.flat_map do |result|
        ["", "==> #{result.part.log} (the last lines)", result.last_lines(LAST_LINES)]
      end
    end

    # Last, because often only the last lines are kept.
    def faults
      with_logs.flat_map do |result|
        faults = result.faults
        shown = faults.first(FAULTS)
        shown << "and #{faults.size - FAULTS} more" if faults.size > FAULTS
        shown.map { |fault| "#{result.part.name}: #{fault}" }
      end
    end

    # Of the failed parts, those that have run.
    def with_logs = failed.select { |result| result.status == :failed }

    def failed = @results.reject(&:passed?)

    def parts
      @results.map { |result| row(result.status, format_seconds(result.seconds), gist(result)) } +
        @not_begun.map { |part| row("not begun", "", part.name) }
    end

    def row(status, time, text) = "  #{status.to_s.ljust(11)} #{time.rjust(6)}  #{text}"

    def gist(result) = [result.part.name, *counts(result.examples)].join(": ")

    def counts(examples)
      "#{examples[0]} examples, #{examples[1]} failures, #{examples[2]} skipped" if examples
    end

    def what_ran
      ran = { "Rubies" => @plan.rubies.keys, "backends" => @plan.backends, "tickers" => @plan.tickers }
      [*ran.map { |name, values| "#{name} #{values.join(", ")}" }, *all_counts, "seed #{@plan.seed}"].join("; ")
    end

    def all_counts
      all = @results.filter_map(&:examples)
      counts(all.transpose.map(&:sum)) if all.any?
    end

    def left_out = @plan.left_out.map { |name, reason| "#{name}: #{reason}" }

    def skipped
      tally = @results.flat_map(&:skipped).tally.sort_by { |reason, count| [-count, reason] }
      tally.map { |reason, count| "#{count}: #{reason}" }
    end

    def list(title, lines) = lines.empty? ? [] : ["#{title}:", *lines.map { |line| "  #{line}" }]

    def verdict
      return "PASSED" if status.zero?

      "FAILED: #{[*failed.map { |result| result.part.name }, *("processes left behind" if @left_behind.any?),
                  *("#{@not_begun.size} parts not begun" if @not_begun.any?)].join("; ")}"
    end

    def format_seconds(seconds)
      seconds < 60 ? "#{seconds.round} s" : format("%<min>d:%<sec>02d", min: seconds / 60, sec: seconds % 60)
    end
  end
end
