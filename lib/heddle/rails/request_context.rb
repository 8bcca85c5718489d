# frozen_string_literal: true

module Heddle
  module Rails
    # What a fiber of {Heddle.spin} takes over from the request that starts it: copies of the `CurrentAttributes`, of
    # the time zone and of the error reporter's context. It runs in Rails' executor, so it returns its own database
    # connection at its end.
    class RequestContext
      # Makes {Heddle.spin} take the context along.
      module Spin
        # @api private
        def spin(*arguments, &block)
          context = RequestContext.capture if block
          return super unless context

          super { |*given| context.run { block.call(*given) } }.tap do |fiber|
            # Reports name the program's block.
            Task.of(fiber).block = block
          end
        end
      end

      ATTRIBUTES = :current_attributes_instances
      COPIED = %i[time_zone active_support_execution_context].freeze
      private_constant :ATTRIBUTES, :COPIED

      # @return [RequestContext, nil] nil outside of requests, jobs, and all else that runs in Rails' executor
      def self.capture
        executor = ::Rails.application&.executor
        new(executor) if executor&.active?
      end

      # @param executor [Class]
      def initialize(executor)
        @executor = executor
        @copied = COPIED.to_h { |key| [key, state[key].dup] }.compact
        @attributes = copy_attributes
      end

      # @return [Object] the block's value
      def run
        @executor.wrap(source: "spin.heddle") do
          # At its start, Rails' executor clears what is put here.
          @copied.each { |key, value| state[key] = value }
          (state[ATTRIBUTES] ||= {}).merge!(@attributes)
          yield
        end
      end

      # @return [void]
      def self.install = Heddle.singleton_class.prepend(Spin)

      private

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
