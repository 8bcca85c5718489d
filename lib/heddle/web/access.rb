# frozen_string_literal: true

module Heddle
  class Web
    # Decides which requests are let in.
    #
    # @api private
    class Access
      # Where the page needs no block.
      OPEN = %w[development test].freeze
      ADVICE = <<~TEXT
        Heddle::Web shows the paths of requests, backtraces and the names of files. So outside of development and test it
        answers no request until the application sets a rule for access:

            Heddle::Web.authorize { |env| env["warden"].user&.admin? }

        The block gets the Rack environment. { true } lets everybody in; that is right if the route or a middleware has
        checked the request already.
      TEXT
      REFUSED = "The block of Heddle::Web.authorize does not let this request in.\n"
      # The names of this machine, with or without a port.
      LOOPBACK = /\A(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])\.?(?::\d+)?\z/i
      private_constant :OPEN, :ADVICE, :REFUSED, :LOOPBACK

      # @param rule [#call, nil]
      # @param variables [#values_at] environment variables
      def initialize(rule = nil, variables: ENV)
        @rule = rule
        @variables = variables
      end

      # @param env [Hash]
      # @return [String, nil] why the request is refused
      def refusal(env)
        return "#{ADVICE}\n#{found}\n" if refuses?

        @rule ? (REFUSED unless @rule.call(env)) : other_host(env)
      end

      # @return [Boolean] whether every request is refused
      def refuses? = @rule.nil? && (environments.empty? || environments.values.any? { |name| !OPEN.include?(name) })

      private

      # A page of another site can let its own name point to this machine, and then read what this one answers: DNS
      # rebinding. The browser states that name in `Host`.
      def other_host(env)
        host = env["HTTP_HOST"]
        return if host.nil? || host.b.match?(LOOPBACK)

        "Without a rule for access, Heddle::Web answers requests to localhost only, and this one is to " \
          "#{Text.clean(host)}. To let it in, write:\n\n    Heddle::Web.authorize { |env| " \
          "env[\"HTTP_HOST\"] == #{Text.clean(host).dump} }\n"
      end

      # One that says production suffices to refuse: Puma sets RACK_ENV to development if nothing is set.
      def environments
        names = %w[APP_ENV RACK_ENV RAILS_ENV]
        found = names.zip(@variables.values_at(*names)).to_h
        found["Rails.env"] = ::Rails.env.to_s if defined?(::Rails) && ::Rails.respond_to?(:env)
        found.reject { |_, name| name.nil? || name.empty? }
      end

      def found
        return "None of APP_ENV, RACK_ENV and RAILS_ENV is set." if environments.empty?

        "This process has #{environments.map { |variable, name| "#{variable}=#{name}" }.join(", ")}."
      end
    end
    private_constant :Access
  end
end
