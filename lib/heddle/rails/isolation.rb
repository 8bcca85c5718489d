# frozen_string_literal: true

module Heddle
  # What Heddle changes in Rails; see docs/rails.md.
  module RailsSupport
    # Raised when a Rails application has a setting that fibers cannot work with.
    class ConfigurationError < Error; end

    # Rails keeps the state of a request, such as its database connection, by thread or by fiber. Fibers that share a
    # thread's state share its transaction, too.
    module Isolation
      MESSAGE = "config.active_support.isolation_level is :thread, but Heddle runs requests on fibers. The fibers of " \
                "a thread would share its database connection and transaction, and CurrentAttributes. Set it to " \
                ":fiber, or leave it out: heddle/rails then sets :fiber"
      private_constant :MESSAGE

      module_function

      # Sets the level to :fiber, unless the application has chosen one.
      #
      # @raise [ConfigurationError] if the application has chosen :thread
      def configure(app)
        level = app.config.active_support.isolation_level
        raise ConfigurationError, MESSAGE if level == :thread

        app.config.active_support.isolation_level = :fiber unless level
      end

      # @raise [ConfigurationError] if the level was changed meanwhile
      def verify
        raise ConfigurationError, MESSAGE if ActiveSupport::IsolatedExecutionState.isolation_level == :thread
      end
    end
    private_constant :Isolation
  end
end
