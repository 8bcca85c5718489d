# frozen_string_literal: true

module Heddle
  module RailsSupport
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
