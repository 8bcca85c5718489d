# frozen_string_literal: true

module Ecosystem
  # The table of docs/compatibility.md.
  class Report
    SIGNS = { good: "✓", same: "=", bad: "✗", broken: "?" }.freeze

    def initialize(results, skipped, contestants)
      @results = results
      @skipped = skipped
      @contestants = contestants
    end

    def table
      head = ["library", "version", "server", *Verdict::COLUMNS, "remark"]
      rows = @results.map { |result| row(result) }
      [head, head.map { "---" }, *rows].map { |cells| "| #{cells.join(" | ")} |" }.join("\n")
    end

    # What was worse than on threads, one line each, for the console.
    def faults
      each_fault.map do |result, column, contestants, reason|
        "✗ #{result.library.title}, #{column} (#{contestants.join(", ")}): #{reason}"
      end
    end

    # Faults of libraries whose file has no remark that explains them.
    def unexpected = each_fault.reject { |result, *| result.library.remark }

    def page
      <<~PAGE
        # Compatibility

        `rake ecosystem` writes this page. It runs each library against its real server, on plain threads and in fibers
        of Heddle: with io_uring and with poll, cooperative and with `preempt: :all`. A verdict holds for all four.
        A check that is worse than on threads is repeated up to twice, as the machine may have been busy; the best counts.
        Those of a library with a remark are not repeated.

        | sign | meaning |
        |---|---|
        | ✓ | good |
        | = | not good, but no worse than on plain threads |
        | ✗ | worse than on plain threads; the remark or the list below says how |

        | column | what is checked |
        |---|---|
        | works | a few typical calls give the same values as on threads |
        | waits at once | #{Checks::TASKS} fibers that wait for the server take as long as one |
        | 10 ms sleeper | a fiber that sleeps 10 ms at a time is late by at most #{(Verdict::LATE * 1000).to_i} ms meanwhile |
        | timeout, kill | `Timeout.timeout` and `Fiber#kill` end a call at once; afterwards the connection is usable or raises an error, and a new one works |
        | server dies | the server is killed: every waiting call raises an error, and so does the next one |

        #{table}

        Ruby #{RUBY_VERSION}. [ecosystem/README.md](../ecosystem/README.md) says how to add a library, and
        [offload.md](offload.md) what to do about libraries that block the thread.
        #{fault_section}#{skipped_section}
        [offload.md](offload.md#known-conflicts) lists known conflicts.
      PAGE
    end

    private

    def row(result)
      [result.library.title, result.version, result.library.server || "–",
       *Verdict::COLUMNS.map { |column| sign(result.verdicts[column]) }, result.library.remark]
    end

    def sign(verdicts)
      return "–" if verdicts.empty?

      kinds = verdicts.values.map(&:kind)
      SIGNS[%i[broken bad same good].find { |kind| kinds.include?(kind) }]
    end

    def each_fault
      @results.flat_map do |result|
        result.verdicts.flat_map do |column, verdicts|
          bad = verdicts.select { |_, verdict| %i[bad broken].include?(verdict.kind) }
          bad.group_by { |_, verdict| verdict.reason.gsub(/\d+(\.\d+)?/, "") }.values.map do |group|
            [result, column, group.map(&:first), group.first.last.reason]
          end
        end
      end
    end

    def fault_section
      return "" if each_fault.empty?

      lines = each_fault.map do |result, column, contestants, reason|
        where = contestants == @contestants ? "" : " (#{contestants.join(", ")})"
        "| #{result.library.title} | #{column}#{where} | #{reason.tr("\n|", "  ")} |"
      end
      "\n## What is worse than on threads\n\n| library | check | observed |\n|---|---|---|\n#{lines.join("\n")}\n"
    end

    def skipped_section
      return "" if @skipped.empty?

      rows = @skipped.sort.map { |title, reason| "| #{title} | #{reason.tr("\n|", "  ")} |\n" }.join
      "\n## Not checked\n\n| library | reason |\n|---|---|\n#{rows}"
    end
  end
end
