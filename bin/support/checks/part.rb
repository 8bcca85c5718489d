# frozen_string_literal: true

module Checks
  # A part of bin/test: a command that passes or fails.
  #
  # after: parts that must have passed before. cpus: how many CPUs it keeps busy; parts run side by side as long as
  # there are enough. limit: seconds; only a hang takes as long as the default, also on a slow machine. That of
  # rakelib/spec.rake is shorter, as it also says where RSpec is.
  Part = Data.define(:name, :command, :environment, :after, :cpus, :limit) do
    def initialize(**fields) = super(environment: {}, after: [], cpus: 1, limit: 60 * 60, **fields)

    def log = "tmp/test/#{name.downcase.gsub(/[^a-z0-9.]+/, "-")}.log"
  end

  Result = Struct.new(:part, :status, :seconds)

  # What became of a part, and what its log says about that.
  class Result
    # The closing lines of RSpec and Cargo, of Ruby's own tests, and of the programs in verification/.
    CLOSING = /^(Finished\ in|\d+\ examples?,|Randomized\ with|test\ result:|\d+\ files\ inspected|SEED=|left\ out:|
               \d+\ programs,|.*\d+\ (tests|runs),.*(failures|errors)|Heddle\ \S+\ runs\ on)/x
    # What verification/ecosystem prints for what is wrong.
    FAULT = /^(✗|not measured:) /
    # Characters of an error.
    ERROR_LENGTH = 200

    def closing_lines = lines.grep(CLOSING).uniq

    def passed? = status == :passed

    # @return [Array<Integer>] examples, failures, pending ones; nil if the part ran no specs
    def examples
      counts = text.scan(/^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?/)
      counts.map { |numbers| numbers.map(&:to_i) }.transpose.map(&:sum) if counts.any?
    end

    # @return [String] the part's name, and how many examples have ended
    def progress
      ended = part.name.start_with?("specs") ? text.scan(/^[.F*]+/).sum(&:size) : 0
      ended.positive? ? "#{part.name}: #{ended} examples" : part.name
    end

    # @return [Array<String>] why examples were skipped
    def skipped = text[/^Pending:.*?(?=^(?:Failures:|Finished in|Top ))/m].to_s.scan(/^ +\d+\) .*\n +# (.*)/).flatten

    # @return [Array<String>] RSpec's failed examples with the beginnings of their errors, and what the programs of
    #   verification/ report; the log's last line if there are none of these
    def faults
      found = failed_examples + lines.grep(FAULT).uniq
      found.any? ? found : lines.reject(&:empty?).last(1)
    end

    def last_lines(count) = text.lines.last(count).join

    private

    def failed_examples
      sections = text.scan(/^Failures:$(.*?)^Finished in/m).flatten
      errors = sections.flat_map { |section| section.split(/^ {2}\d+\) /).drop(1) }.map { |failure| error(failure) }
      text.scan(/^rspec (\S+) # /).flatten.zip(errors).map { |example, error| "#{example}: #{error}" }
    end

    # What stands between the line of the example that has failed and the backtrace.
    def error(failure)
      _, _, message = failure.partition("Failure/Error:").last.partition("\n\n")
      message.lines.map(&:strip).take_while { |line| !line.start_with?("# ") }.join(" ").squeeze(" ")[0, ERROR_LENGTH]
    end

    def lines = text.lines(chomp: true)

    def text = File.file?(part.log) ? File.read(part.log, encoding: "UTF-8").scrub : ""
  end
end
