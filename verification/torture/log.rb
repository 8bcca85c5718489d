# frozen_string_literal: true

module Torture
  # How one test ended.
  #
  # outcome: :passed, :skipped (by itself), :failed, :crashed (the process ended in it, or the file couldn't be loaded),
  # or :hung. leaks: what the test has left behind.
  Result = Data.define(:file, :test, :outcome, :message, :seconds, :leaks) do
    def passed? = outcome == :passed
    def broken? = %i[crashed hung].include?(outcome)
    def key = [file, test]
  end

  # The events of a child process, line by line.
  class Log
    attr_reader :path

    def initialize(path)
      @path = path
    end

    # Grows with each event.
    def size = File.exist?(@path) ? File.size(@path) : 0

    # @return [String, nil] the test that was running last, if it didn't end
    def current
      started = of(:start).last&.first
      started unless outcomes.key?(started) && ends.key?(started)
    end

    # Whether all tests were run.
    def complete? = events.any? { |kind,| kind == :done }

    # The seconds since the last event.
    def seconds = File.exist?(@path) ? Time.now - File.mtime(@path) : 0

    # @return [Array<Result>] of the tests that have ended
    def results(file)
      # A test that passed but did not end is left out.
      outcomes.slice(*ends.keys).map do |test, (outcome, message)|
        Result.new(file, test, outcome, message, ends.fetch(test), leaks.fetch(test, []))
      end
    end

    private

    def events
      @events ||= lines.map do |line|
        Marshal.load(line.unpack1("m0")) # rubocop:disable Security/MarshalLoad -- from our own child
      end
    end

    # The last line may be cut off.
    def lines
      File.exist?(@path) ? File.readlines(@path).select { |line| line.end_with?("\n") }.map(&:chomp) : []
    end

    def of(kind) = events.filter_map { |event, *rest| rest if event == kind }

    # Of the outcomes of a test and its teardown, the worse one counts.
    def outcomes
      @outcomes ||= of(:outcome).each_with_object({}) do |(test, outcome, message), outcomes|
        outcomes[test] = [outcome, message] unless outcomes.dig(test, 0) == :failed
      end
    end

    def ends = @ends ||= of(:end).to_h

    # Leaks are reported after the end of the test.
    def leaks
      @leaks ||= events.slice_before { |kind,| kind == :start }.to_h do |(_, test), *rest|
        [test, rest.filter_map { |kind, *lines| lines if kind == :leak }.flatten]
      end
    end
  end
end
