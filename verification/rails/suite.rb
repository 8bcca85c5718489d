# frozen_string_literal: true

# Runs the tests of one component of Rails in this process: `ruby suite.rb MODE RESULTS FILE…`. MODE is `thread` or
# `fiber`. In fibers, all tests run in one preempted scheduler, beside a fiber that computes and one that sleeps. Writes
# a line for each test to RESULTS: its class, its name, its outcome, and the first line of the failure.

# Rails up to 8.1 passes json's methods what json 3 does not take.
gem "json", "< 3"
require "minitest"
require "yaml"

mode, results, *files = ARGV.slice!(0..)
# Some tests take another way where Rails is loaded.
require "logger"
require "rails"

module Torture
  # What is done to Rails' tests.
  module RailsSuite
    LEFT_OUT = YAML.safe_load_file(File.join(__dir__, "left_out.yml")).values.flatten

    class << self
      # @return [IO]
      attr_accessor :results

      # Computes for a while. Tests with threads of their own need the GVL in between.
      def compute
        ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.02
        nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) > ends
        sleep 0.005
      end
    end

    # Writes what becomes of each test.
    module Recording
      def record(result)
        super
        error = result.failure&.message.to_s.lines.first.to_s.strip
        RailsSuite.results.puts([result.klass, result.name, result.result_code, error].join("\t"))
      end
    end

    # Leaves out tests, with a reason, on threads, too.
    module LeavingOut
      def run
        LEFT_OUT.include?("#{self.class}##{name}") ? Minitest::Result.from(self) : super
      end
    end

    # Runs all tests in fibers.
    module InFibers
      def run(...)
        status = nil
        # A test ends the fibers that keep a connection. The files have used some in this one.
        ActiveRecord::Base.connection_handler.clear_active_connections!(:all) if defined?(ActiveRecord::Base)
        # It raises a thread's error in the main thread's root fiber, which ends all tests. On a thread that is a test.
        Thread.abort_on_exception = false
        Heddle.run(preempt: :all) do
          Heddle.spin(background: true) { loop { RailsSuite.compute } }
          Heddle.spin(background: true) { loop { sleep 0.001 } }
          status = super
          RailsSuite.results.puts("preemptions\t#{Fiber.scheduler.stats[:run_queue][:preemptions_count]}")
        end
        status
      end
    end
  end
end

Torture::RailsSuite.results = File.open(results, "w")
Torture::RailsSuite.results.sync = true
Minitest::CompositeReporter.prepend(Torture::RailsSuite::Recording)
Minitest::Test.prepend(Torture::RailsSuite::LeavingOut)
if mode == "fiber"
  require "heddle/rails"
  ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
  Minitest.singleton_class.prepend(Torture::RailsSuite::InFibers)
end

files.each do |file|
  require File.expand_path(file)
rescue LoadError, NameError => e
  # A library that the test needs is missing, or has another version.
  Torture::RailsSuite.results.puts(["not loaded", file, "S", e.message.lines.first.strip].join("\t"))
end
