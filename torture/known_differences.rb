# frozen_string_literal: true

require "yaml"

module Torture
  # The tests that are not run, and why: a committed list. Only what is no fault of Heddle's may be listed.
  #
  # An entry names one test (`test`) or several (`tests`) and a `reason`. `rubies`, `modes` and `backends` say what it
  # is about; without them, all are meant.
  class KnownDifferences
    # @param path [String] the YAML file
    # @param about [Hash{String => String}] "rubies", "modes", "backends" => what is being run
    def initialize(path, **about)
      entries = YAML.safe_load_file(path) || []
      @reasons = entries.select { |entry| about?(entry, about) }.each_with_object({}) do |entry, reasons|
        (entry["tests"] || [entry.fetch("test")]).each { |test| reasons[test] = entry.fetch("reason") }
      end
    end

    # @return [String, nil]
    def reason(test) = @reasons[test]

    # @return [Array<String>] the names of the tests
    def tests = @reasons.keys

    private

    def about?(entry, about)
      about.all? { |key, value| entry.fetch(key.to_s, [value]).include?(value) }
    end
  end
end
