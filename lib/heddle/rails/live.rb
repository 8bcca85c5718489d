# frozen_string_literal: true

module Heddle
  module RailsSupport
    # `ActionController::Live` runs an action beside the request that sends its response. If the request runs on a fiber
    # of Heddle, so does the action, on the same thread.
    module Live
      # The state of the request for its action. Rails would look for it in the thread.
      STATE = :heddle_request_state
      # While the executor is made.
      MAKING = Guard.new
      private_constant :MAKING

      # Passes the state of the request's fiber on.
      module SharedState
        # @api private
        def share_with(other, ...)
          shared = Thread.current[STATE]
          return super unless shared && other.is_a?(Thread)

          context.active_support_execution_state = shared.dup
        end
      end

      # @return [void]
      def self.install
        ActiveSupport::IsolatedExecutionState.singleton_class.prepend(SharedState)
        ActiveSupport.on_load(:action_controller) { ActionController::Live.prepend(Live) }
      end

      # @return [Executor]
      def self.executor
        @executor || MAKING.synchronize { @executor ||= Executor.new(name: "ActionController::Live") }
      end

      # @param state [Hash, nil] that of the request's fiber
      # @yield the action
      # @return [void]
      def self.run(state)
        Thread.current[STATE] = state || {}
        yield
      ensure
        if Object.const_defined?("ActiveRecord::Base")
          ActiveRecord::Base.connection_handler.clear_active_connections!(:all)
        end
      end

      private

      def new_controller_thread(&action)
        return super unless Fiber.current_scheduler.is_a?(Scheduler)

        state = Fiber.current.active_support_execution_state
        Live.executor.post { Live.run(state, &action) }
      end
    end
    private_constant :Live
  end
end
