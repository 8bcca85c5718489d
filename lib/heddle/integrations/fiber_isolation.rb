# frozen_string_literal: true

module Heddle # :nodoc:
  # ActiveSupport keeps `CurrentAttributes`, the time zone, tagged logging's tags and Active Record's connection by
  # thread, unless it is told otherwise: the requests of a thread of fibers would share them. `heddle/rails` sets the
  # level with the application's configuration. Without Rails this does.
  module FiberIsolation
    MESSAGE = "Heddle: ActiveSupport::IsolatedExecutionState.isolation_level was :thread, by which all requests and " \
              "jobs of a thread share CurrentAttributes, the time zone and the database connection. It is :fiber " \
              "now. Set it so before the server starts: with Rails, by require \"heddle/rails\""
    LOCK = Mutex.new
    private_constant :MESSAGE, :LOCK

    class << self
      # Called when a server starts, and then often, because ActiveSupport may be loaded later.
      #
      # Requests may do so at once, and each goes on only after the level is set: setting it clears what the thread had.
      #
      # @yieldparam message [String] if the level was another
      # @return [void]
      def ensure
        return if @ensured || !loaded?

        state = ::ActiveSupport::IsolatedExecutionState
        was = LOCK.synchronize do
          next if @ensured

          state.isolation_level.tap do
            state.isolation_level = :fiber
            @ensured = true
          end
        end
        yield MESSAGE if was == :thread
      end

      private

      # Without loading it.
      def loaded?
        defined?(::ActiveSupport) && !::ActiveSupport.autoload?(:IsolatedExecutionState) &&
          ::ActiveSupport.const_defined?(:IsolatedExecutionState, false)
      end
    end
  end
  private_constant :FiberIsolation
end
