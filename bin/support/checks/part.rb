# frozen_string_literal: true

module Checks
  # A part of bin/test: a command that passes or fails.
  #
  # after: parts that must have passed before. cpus: how many CPUs it keeps busy; parts run side by side as long as
  # there are enough. limit: seconds.
  Part = Data.define(:name, :command, :environment, :after, :cpus, :limit) do
    def initialize(**fields) = super(environment: {}, after: [], cpus: 1, limit: 20 * 60, **fields)

    def log = "tmp/test/#{name.downcase.gsub(/[^a-z0-9.]+/, "-")}.log"
  end

  # What became of a part, and what its log says about that.
  Result = Struct.new(:part, :status, :seconds) do
    # The closing lines of RSpec and Cargo, of Ruby's own tests, and of the programs in verification/.
    closing = /^(Finished\ in|\d+\ examples?,|Randomized\ with|test\ result:|\d+\ files\ inspected|SEED=|left\ out:|
               \d+\ programs,|.*\d+\ (tests|runs),.*(failures|errors)|Heddle\ \S+\ runs\ on)/x
    define_method(:closing_lines) { text.lines(chomp: true).grep(closing).uniq }

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

    def last_lines(count) = text.lines.last(count).join

    def text = File.file?(part.log) ? File.read(part.log, encoding: "UTF-8").scrub : ""
  end
end
