# frozen_string_literal: true

# The modules that are prepended to Test::Unit's classes.
module Modules
  # Runs each test in the surroundings of the plan, and reports its start and its end.
  #
  # @param events [Events]
  # @param around [Proc]
  def self.for_test_case(events, around)
    Module.new do
      define_method(:run) do |runner|
        test = "#{self.class}##{__name__}"
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        events << [:start, test]
        around.call { super(runner) }
      rescue *Test::Unit::TestCase::PASSTHROUGH_EXCEPTIONS
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- as Test::Unit does
        events << [:outcome, test, :failed, "Outside of the test: #{e.full_message(highlight: false)}"]
        "E"
      ensure
        events << [:end, test, Process.clock_gettime(Process::CLOCK_MONOTONIC) - started]
      end
    end
  end

  # Chooses the tests, and reports their outcomes.
  #
  # @param chosen [Proc] whether a test, named "Class#test", is to be run
  def self.for_runner(events, chosen)
    Module.new do
      define_method(:_run_anything) do |type|
        options[:filter] = chosen
        super(type)
        events << [:done]
      end

      define_method(:record) do |suite, name, assertions, time, error|
        outcome = { nil => :passed, Test::Unit::PendedError => :skipped }.fetch(error&.class, :failed)
        events << [:outcome, "#{suite}##{name}", outcome, error&.full_message(highlight: false)]
        super(suite, name, assertions, time, error)
      end
    end
  end

  # Reports what a test has left behind: descriptors, threads, temporary files, environment variables.
  def self.for_leak_checker(events)
    Module.new do
      define_method(:puts) do |*lines|
        events << [:leak, *lines]
        super(*lines)
      end
    end
  end
end
