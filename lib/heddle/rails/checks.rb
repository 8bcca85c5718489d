# frozen_string_literal: true

module Heddle
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

    # Tells which connection pools of Active Record have fewer connections than there will be fibers.
    module ConnectionPools
      module_function

      # @param fibers [Integer] how many fibers may ask for a connection at the same time
      # @return [Array<String>] a message for each pool that is too small
      def warnings(fibers)
        ActiveRecord::Base.connection_handler.connection_pool_list(:all).filter_map do |pool|
          describe(pool, fibers) if pool.size < fibers
        end
      end

      def describe(pool, fibers)
        config = pool.db_config
        <<~TEXT
          Heddle: the connection pool of #{config.name.inspect} has #{pool.size} connections, and up to #{fibers} fibers may ask for one.
          A fiber that finds none waits, and after #{config.checkout_timeout} s raises ActiveRecord::ConnectionTimeoutError. Either raise
          `pool:` in config/database.yml, as far as the database's own limit allows, or hold connections for a short
          time only: `with_connection { |connection| … }` gives the connection back at the end of its block, while
          `connection` and `lease_connection` keep it until the request ends. Queries of models give it back at once.
          `config.active_record.permanent_connection_checkout = :deprecated` finds the calls that keep it. If fewer
          fibers query at the same time, say so by `config.heddle.fibers = #{pool.size}`; nil turns this check off.
        TEXT
      end
      private_class_method :describe
    end
    private_constant :ConnectionPools

    # Finds a mounted {Web} that would refuse every request, when the application starts rather than at the first visit.
    module WebMount
      module_function

      # @return [void]
      def install
        ActiveSupport.on_load(:after_routes_loaded, yield: true) do |app|
          WebMount.verify(app.routes.routes) if Heddle.const_defined?(:Web, false)
        end
      end

      # @param routes [Enumerable]
      # @raise [ConfigurationError] if one of them is {Web}, and {Web.authorize} has not been called
      def verify(routes)
        mounted = routes.any? { |route| route.app.respond_to?(:app) && route.app.app.equal?(Web) }
        return unless mounted && Web.refuses?

        raise ConfigurationError, "Heddle::Web is mounted without a rule for access. Outside of development and " \
                                  "test, write one before the route: " \
                                  "Heddle::Web.authorize { |env| env[\"warden\"].user&.admin? }"
      end
    end
    private_constant :WebMount
  end
end
