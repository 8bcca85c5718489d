# frozen_string_literal: true

require "uri"

module Heddle
  class Web
    # Refuses cross-site request forgery: another site's page makes a request with the cookies of a user of this one.
    # Browsers state a request's origin in a header that no page can change.
    #
    # @api private
    module Origin
      SITE = "HTTP_SEC_FETCH_SITE"
      ORIGIN = "HTTP_ORIGIN"
      ADVICE = "A program that is no browser sends the header \"Sec-Fetch-Site: same-origin\".\n"
      private_constant :SITE, :ORIGIN, :ADVICE

      module_function

      # Browsers send `Sec-Fetch-Site` to hosts with TLS and to localhost, and `Origin` to others, too.
      #
      # @param env [Hash] of a POST
      # @return [String, nil] why the request is refused
      def refusal(env)
        site, origin = env.values_at(SITE, ORIGIN)
        if site
          "This request comes from another site: Sec-Fetch-Site is #{site}.\n" unless site == "same-origin"
        elsif !origin
          "This request does not say where it comes from. #{ADVICE}"
        elsif authority(origin) != env["HTTP_HOST"].to_s.downcase
          "This request comes from #{origin}, and this is #{env["HTTP_HOST"]}.\n"
        end
      end

      # @return [String, nil] the host, and the port unless it is the scheme's own, as browsers write it in `Host`
      def authority(origin)
        uri = URI.parse(origin)
        return unless uri.is_a?(URI::HTTP) && uri.host

        uri.port == uri.default_port ? uri.host.downcase : "#{uri.host.downcase}:#{uri.port}"
      rescue URI::InvalidURIError
        nil
      end
      private_class_method :authority
    end
    private_constant :Origin
  end
end
