# frozen_string_literal: true

require "fileutils"
require_relative "file_run"

module Torture
  # Says how tests end on plain Ruby. It is asked only about tests that did not pass with Heddle, and keeps its answers.
  class Judge
    # @param folder [String] where the answers are kept
    def initialize(tree, folder:, limit:)
      @tree = tree
      @limit = limit
      @path = File.join(folder, "plain-#{RUBY_VERSION}-#{tree.tr("/", "-")}")
      @outcomes = File.exist?(@path) ? load_answers : {}
      @lock = Mutex.new
    end

    # @param tests [Array<String>] of the file
    # @return [Hash{String => Symbol}] the outcome of each; nil for one that plain Ruby doesn't have
    def outcomes(file, tests)
      unknown = @lock.synchronize { tests.reject { |test| @outcomes.key?([file, test]) } }
      ask(file, unknown) if unknown.any?
      @lock.synchronize { tests.to_h { |test| [test, @outcomes[[file, test]]] } }
    end

    def save
      FileUtils.mkdir_p(File.dirname(@path))
      File.binwrite(@path, Marshal.dump(@outcomes))
    end

    private

    def load_answers
      Marshal.load(File.binread(@path)) # rubocop:disable Security/MarshalLoad -- our own
    end

    def ask(file, tests)
      results = FileRun.new(Plan.new(tree: @tree, file:, only: tests), limit: @limit).results
      @lock.synchronize do
        tests.each { |test| @outcomes[[file, test]] = nil }
        results.each { |result| @outcomes[result.key] = result.outcome }
      end
    end
  end
end
