# frozen_string_literal: true

module Ecosystem
  # The table of docs/libraries.md.
  class Report
    BEGINNING = "<!-- `rake ecosystem` writes from here -->"
    ENDING = "<!-- to here -->"
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

    # What was worse than on threads, one line each, for the console: what the library's file expects as known.
    def faults
      each_fault.map do |result, column, contestants, reason|
        sign = result.library.weak.include?(column) ? "known:" : SIGNS[:bad]
        "#{sign} #{result.library.title}, #{column} (#{contestants.join(", ")}): #{reason}"
      end
    end

    # Faults that the library's file does not expect.
    def unexpected = each_fault.reject { |result, column, *| result.library.weak.include?(column) }

    # The guide with the section between its two marks written anew.
    def write_into(guide)
      marks = /(?<=#{Regexp.escape(BEGINNING)}\n).*(?=#{Regexp.escape(ENDING)}\n)/m
      text = File.read(guide, encoding: Encoding::UTF_8)
      raise "#{guide} has no lines #{BEGINNING} and #{ENDING}" unless text.match?(marks)

      File.write(guide, text.sub(marks) { "\n#{section.rstrip}\n\n" })
    end

    private

    def section
      <<~SECTION
        #{table}

        Ruby #{RUBY_VERSION}, commit #{commit}, #{Time.now.strftime("%F")}.
        #{skipped_section}
      SECTION
    end

    def commit = IO.popen(%w[git rev-parse --short HEAD], err: File::NULL, &:read).strip

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

    def skipped_section
      return "" if @skipped.empty?

      rows = @skipped.sort.map { |title, reason| "| #{title} | #{reason.tr("\n|", "  ")} |\n" }.join
      "\nNot checked:\n\n| library | reason |\n|---|---|\n#{rows}"
    end
  end
end
