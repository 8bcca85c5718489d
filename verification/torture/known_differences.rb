# frozen_string_literal: true

require "yaml"

module Torture
  # The tests that are not run, with the reasons. Only differences that are no fault of Heddle may be listed.
  #
  # An entry names one test (`test`) or several (`tests`) and a `reason`. `rubies`, `modes` and `backends` restrict the
  # entry.
  class KnownDifferences
    # @param path [String] the YAML file
    # @param about [Hash{String => String}] "rubies", "modes" and "backends" of this run
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
