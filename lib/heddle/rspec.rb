# frozen_string_literal: true

require "heddle/testing"
require "rspec/core"

unless Heddle.supported?
  Heddle.const_get(:Extension).step_aside("examples run without fibers")
  return
end

module Heddle
  # Examples of RSpec that run in fibers: `require "heddle/rspec"`.
  #
  # | metadata | the example |
  # |---|---|
  # | `:fibers` | runs within {Heddle.run} |
  # | `fibers: 5` | also has a time limit of 5 seconds, which holds for each explored run by itself |
  # | `clock: :virtual` | runs within {Heddle.run}, with a virtual clock: see {Testing.run} |
  # | `explore: 200` | runs under at most 200 schedules; see {Testing.explore} |
  # | `:explore` | runs under as many as {Testing.explore} takes by default |
  # | `explore: { strategy: :pct, depth: 2 }` | passes these arguments to {Testing.explore} |
  #
  # With `HEDDLE_EXPLORE=20` in the environment, examples with `:fibers` are explored, too. Each run of an explored
  # example has `before` and `after` hooks, values of `let` and instance variables of its own. So it has `around` hooks,
  # unless they were configured before `require "heddle/rspec"`: those run once, around all runs.
  #
  # @example
  #   require "heddle/rspec"
  #
  #   RSpec.describe Account do
  #     it "loses no withdrawal", explore: 200 do
  #       account = Account.new(100)
  #       Heddle.await_all(Heddle.spin { account.withdraw(10) }, Heddle.spin { account.withdraw(10) })
  #       expect(account.balance).to eq(80)
  #     end
  #   end
  module RSpecExamples
    class << self
      # Runs an example as its metadata say.
      #
      # @api private
      # @param procsy [RSpec::Core::Example::Procsy]
      def around(procsy)
        metadata = procsy.metadata
        if (wanted = wanted(metadata))
          explore(procsy, wanted)
        elsif metadata.values_at(:fibers, :clock).any?
          Testing.run(clock: metadata.fetch(:clock, :real)) do
            limited(procsy)
            metadata[:extra_failure_lines] ||= Testing.jumps_over
          end
        else
          procsy.run
        end
      end

      # Runs an example within the time limit of its metadata.
      #
      # @api private
      # @param procsy [RSpec::Core::Example::Procsy]
      def limited(procsy)
        limit = procsy.metadata[:fibers]
        return procsy.run if [nil, false, true].include?(limit)

        Heddle.cancel_after(limit) { procsy.run }
      end

      private

      def wanted(metadata)
        metadata.fetch(:explore) { metadata[:fibers] && ENV.fetch("HEDDLE_EXPLORE", nil) && true }
      end

      def explore(procsy, explore)
        ExploredExample.new(procsy).call(options(explore, procsy.example))
      end

      def options(explore, example)
        given = { clock: example.metadata[:clock] }.compact
        case explore
        when true then given
        when Hash then given.merge(explore)
        else given.merge(runs: explore)
        end
      end
    end

    # An example that runs under many schedules. A pending example is expected to fail under one of them.
    class ExploredExample
      # What `pending` and `skip` set.
      MARKS = %i[pending skip].freeze
      private_constant :MARKS

      # @param procsy [RSpec::Core::Example::Procsy]
      def initialize(procsy)
        @procsy = procsy
        @example = procsy.example
        @result = @example.execution_result
        @marks = MARKS.to_h { |mark| [mark, @example.metadata[mark]] }
        @message = @result.pending_message
        @group = @example.example_group_instance
        @variables = @group.instance_variables.to_h { |name| [name, @group.instance_variable_get(name)] }
      end

      # @param options [Hash] see {Testing.explore}
      # @raise [Testing::Failure] if a run has failed; RSpec takes it for the expected failure of a pending example
      # @raise [RSpec::Core::Pending::PendingExampleFixedError] if the example is pending, and no run has failed
      def call(options)
        explore(options)
        return unless @fixed

        ::RSpec::Core::Pending.mark_fixed!(@example)
        raise @fixed
      end

      private

      def explore(options)
        path = @example.metadata[:absolute_file_path]
        Testing.explore_test(path, -> { command }, options) { run_anew }
      ensure
        forget_errors
      end

      def command
        ruby = Testing.ruby_options
        folders = ::RSpec.configuration.libs.flat_map { |folder| ["-I", folder] }
        [*(["ruby", *ruby, "-S"] unless ruby.empty?), "rspec", *folders, @example.location_rerun_argument]
      end

      def run_anew
        forget_errors
        forget_marks
        restore_variables
        aggregated { RSpecExamples.limited(@procsy) }
        error = @example.exception || @result.pending_exception or return
        raise error unless error.is_a?(::RSpec::Core::Pending::PendingExampleFixedError)

        @fixed = error
      end

      # With `:aggregate_failures` the failures belong to their run: RSpec would collect those of all runs, of which
      # none would be the first to fail.
      def aggregated(&)
        return yield unless @example.metadata[:aggregate_failures]

        ::RSpec::Support.with_failure_notifier(::RSpec::Support::DEFAULT_FAILURE_NOTIFIER) do
          ::RSpec::Expectations::FailureAggregator.new(nil, {}).aggregate(&)
        end
      end

      # RSpec would report the error of each run.
      def forget_errors
        @example.instance_variable_set(:@exception, nil)
        @result.pending_exception = nil
        @result.pending_fixed = false
      end

      # Each run begins with the instance variables that the exploration began with, and without values of `let`.
      def restore_variables
        (@group.instance_variables - @variables.keys).each { |name| @group.remove_instance_variable(name) }
        @variables.each { |name, value| @group.instance_variable_set(name, value) }
        @group.__send__(:__init_memoized)
      end

      # The example may call `pending` or `skip` again.
      def forget_marks
        @example.metadata.merge!(@marks)
        @result.pending_message = @message
      end
    end
    private_constant :ExploredExample
  end
end

RSpec.configure do |config|
  config.around { |example| Heddle::RSpecExamples.around(example) }
end
