# frozen_string_literal: true

module Heddle
  module RailsSupport
    # What work takes over from the request that starts it: copies of the `CurrentAttributes`, of the time zone and of
    # the error reporter's context. Work that is a unit of its own, such as a fiber of {Heddle.spin}, runs in Rails'
    # executor, so it returns its own database connection at its end. See {WorkContext}.
    class RequestContext
      TIME_ZONE = :time_zone
      private_constant :TIME_ZONE

      class << self
        # @param wrap [Boolean] whether to run the work in Rails' executor
        # @return [RequestContext, nil] nil outside of requests, jobs, and all else that runs in Rails' executor
        def capture(wrap:)
          # Only `require "rails"` defines the application.
          executor = ::Rails.application&.executor if ::Rails.respond_to?(:application)
          new(wrap ? executor : nil) if executor&.active?
        end

        # Runs the block with a state of its own. A pool's thread has no other.
        #
        # @return [Object] the block's value
        def isolate
          state = ActiveSupport::IsolatedExecutionState.context.active_support_execution_state
          ActiveSupport::IsolatedExecutionState.context.active_support_execution_state = nil
          yield
        ensure
          ActiveSupport::IsolatedExecutionState.context.active_support_execution_state = state
        end

        # @return [void]
        def install
          WorkContext.application = self if part.usable?
        end

        private

        def part
          RailsSupport.part(
            "fibers that a request starts do not see its CurrentAttributes",
            uses: ["ActiveSupport::CurrentAttributes.current_instances()", "ActiveSupport::CurrentAttributes#attributes()",
                   "ActiveSupport::CurrentAttributes#attributes=(_)", "ActiveSupport::ExecutionContext.to_h()",
                   "ActiveSupport::ExecutionContext.[]=(_, _)", "ActiveSupport::IsolatedExecutionState.[](_)",
                   "ActiveSupport::IsolatedExecutionState.[]=(_, _)", "Fiber#active_support_execution_state()"]
          )
        end
      end

      # @param executor [Class, nil] nil for work that is a part of what the caller does
      def initialize(executor)
        @executor = executor
        @time_zone = state[TIME_ZONE]
        @context = ActiveSupport::ExecutionContext.to_h
        @attributes = copy_attributes
      end

      # @return [Object] the block's value
      def run(&)
        @executor ? @executor.wrap(source: "spin.heddle") { restore(&) } : restore(&)
      end

      private

      # At its start, Rails' executor clears what is put here.
      def restore
        state[TIME_ZONE] = @time_zone if @time_zone
        @context.each { |key, value| ActiveSupport::ExecutionContext[key] = value }
        instances.merge!(@attributes)
        yield
      end

      def state = ActiveSupport::IsolatedExecutionState

      # The fiber's own, by their classes' names. Where they are kept differs among the versions of Rails.
      def instances = ActiveSupport::CurrentAttributes.send(:current_instances)

      def copy_attributes
        instances.transform_values do |instance|
          instance.dup.tap { |copy| copy.attributes = instance.attributes.dup }
        end
      end
    end
    private_constant :RequestContext
  end
end
