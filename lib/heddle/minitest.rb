# frozen_string_literal: true

require "heddle/testing"
require "minitest"

unless Heddle.supported?
  require_relative "testing/minitest_threads"
  Heddle.const_get(:Extension).step_aside("tests run without fibers")
  return
end

module Heddle
  # Tests of minitest that run in fibers: `require "heddle/minitest"`, and include this in a class of tests. Each test
  # runs within {Heddle.run}. With {ClassMethods#explore} in the class, or `HEDDLE_EXPLORE=20` in the environment, it
  # runs under many schedules, with an object, a `setup` and a `teardown` of its own for each run.
  #
  # @example
  #   class AccountTest < Minitest::Test
  #     include Heddle::MinitestFibers
  #     explore runs: 200
  #
  #     def test_withdrawals
  #       account = Account.new(100)
  #       Heddle.await_all(Heddle.spin { account.withdraw(10) }, Heddle.spin { account.withdraw(10) })
  #       assert_equal 80, account.balance
  #     end
  #   end
  module MinitestFibers
    # What a class of tests gets.
    module ClassMethods
      # Runs each test of the class under many schedules.
      #
      # @param arguments [Hash] see {Testing.explore}
      # @return [void]
      # @example
      #   explore strategy: :pct, runs: 500
      def explore(**arguments)
        @explored = arguments
      end

      # @api private
      # @return [Hash, nil]
      def explored
        @explored || (superclass.explored if superclass.respond_to?(:explored))
      end
    end

    # Runs a test of such a class.
    module Runner
      # @api private
      # @return [Minitest::Result]
      def run(...)
        return super if @explored

        arguments = self.class.explored || ({} if ENV["HEDDLE_EXPLORE"])
        return Heddle.run { super } unless arguments

        explore_test(arguments)
        ::Minitest::Result.from(self)
      end

      private

      def explore_test(arguments)
        file, = method(name).source_location
        command = -> { ["ruby", *Testing.ruby_options, file, "-n", name] }
        time_it { Testing.explore_test(file, command, arguments) { run_anew } }
      rescue ::Minitest::Skip => e
        failures << e
      rescue StandardError => e
        failures << failure_for(e)
      end

      def run_anew
        test = self.class.new(name)
        test.instance_variable_set(:@explored, true)
        test.run
        self.assertions += test.assertions
        failure = test.failure
        raise failure.is_a?(::Minitest::UnexpectedError) ? failure.error : failure if failure
      end

      def failure_for(error)
        return ::Minitest::UnexpectedError.new(error) unless error.cause.is_a?(::Minitest::Assertion)

        ::Minitest::Assertion.new(error.message).tap { |assertion| assertion.set_backtrace(error.backtrace) }
      end
    end

    # @api private
    def self.included(type)
      super
      type.extend(ClassMethods)
      type.prepend(Runner)
    end
  end
end

Heddle::Testing.verdicts << Minitest::Skip
