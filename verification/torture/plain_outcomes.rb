# frozen_string_literal: true

require "fileutils"
require_relative "file_run"

module Torture
  # How tests end on plain Ruby. Only tests that did not pass with Heddle are run, and their outcomes are kept.
  class PlainOutcomes
    # @param folder [String] where the outcomes are kept
    def initialize(tree, folder:, limit:)
      @tree = tree
      @limit = limit
      @path = File.join(folder, "plain-#{RUBY_VERSION}-#{tree.tr("/", "-")}")
      @outcomes = File.exist?(@path) ? load_outcomes : {}
      @lock = Mutex.new
    end

    # @param tests [Array<String>] of the file
    # @return [Hash{String => Symbol}] the outcome of each; nil for one that plain Ruby doesn't have
    def outcomes(file, tests)
      unknown = @lock.synchronize { tests.reject { |test| @outcomes.key?([file, test]) } }
      run(file, unknown) if unknown.any?
      @lock.synchronize { tests.to_h { |test| [test, @outcomes[[file, test]]] } }
    end

    def save
      FileUtils.mkdir_p(File.dirname(@path))
      File.binwrite(@path, Marshal.dump(@outcomes))
    end

    private

    def load_outcomes
      Marshal.load(File.binread(@path)) # rubocop:disable Security/MarshalLoad -- our own
    end

    def run(file, tests)
      results = FileRun.new(Plan.new(tree: @tree, file:, only: tests), limit: @limit).results
      @lock.synchronize do
        tests.each { |test| @outcomes[[file, test]] = nil }
        results.each { |result| @outcomes[result.key] = result.outcome }
      end
    end
  end
end
