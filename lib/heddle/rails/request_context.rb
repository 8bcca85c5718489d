# frozen_string_literal: true

module Heddle
  module RailsSupport
    # What work takes over from the request that starts it: copies of the `CurrentAttributes`, of the time zone and of
    # the error reporter's context. Work that is a unit of its own, such as a fiber of {Heddle.spin}, runs in Rails'
    # executor, so it returns its own database connection at its end. See {WorkContext}.
    class RequestContext
      ATTRIBUTES = :current_attributes_instances
      COPIED = %i[time_zone active_support_execution_context].freeze
      private_constant :ATTRIBUTES, :COPIED

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
        def install = WorkContext.application = self
      end

      # @param executor [Class, nil] nil for work that is a part of what the caller does
      def initialize(executor)
        @executor = executor
        @copied = COPIED.to_h { |key| [key, state[key].dup] }.compact
        @attributes = copy_attributes
      end

      # @return [Object] the block's value
      def run(&)
        @executor ? @executor.wrap(source: "spin.heddle") { restore(&) } : restore(&)
      end

      private

      # At its start, Rails' executor clears what is put here.
      def restore
        @copied.each { |key, value| state[key] = value }
        (state[ATTRIBUTES] ||= {}).merge!(@attributes)
        yield
      end

      def state = ActiveSupport::IsolatedExecutionState

      def copy_attributes
        (state[ATTRIBUTES] || {}).transform_values do |instance|
          instance.dup.tap { |copy| copy.attributes = instance.attributes.dup }
        end
      end
    end
    private_constant :RequestContext
  end
end
