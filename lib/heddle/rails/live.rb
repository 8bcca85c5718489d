# frozen_string_literal: true

module Heddle
  module RailsSupport
    # `ActionController::Live` runs an action beside the request that sends its response. If the request runs on a fiber
    # of Heddle, so does the action, on the same thread.
    module Live
      # The state of the request for its action. Rails would look for it in the thread.
      STATE = :heddle_request_state
      EXECUTOR = PerProcess.new { Executor.new(name: "ActionController::Live") }
      private_constant :EXECUTOR

      # Stands for the thread in which Rails looks.
      StateOwner = Struct.new(:active_support_execution_state)
      private_constant :StateOwner

      # Passes the state of the request's fiber on. Rails' method says what of it, and for how long.
      module SharedState
        # @api private
        def share_with(other, ...)
          shared = Thread.current[STATE]
          super(shared && other.is_a?(Thread) ? StateOwner.new(shared) : other, ...)
        end
      end

      # @return [void]
      def self.install
        ActiveSupport.on_load(:action_controller) { Live.part.install }
      end

      # @return [AdapterPart]
      def self.part
        RailsSupport.part(
          "actions of ActionController::Live run on threads, without the state of their request",
          uses: ["ActiveSupport::IsolatedExecutionState.share_with(_ | _, except:)",
                 "Fiber#active_support_execution_state()"],
          overrides: { "ActiveSupport::IsolatedExecutionState.singleton_class" => SharedState,
                       "ActionController::Live" => Live }
        )
      end

      # @return [Executor]
      def self.executor = EXECUTOR.get

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
