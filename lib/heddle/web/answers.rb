# frozen_string_literal: true

module Heddle
  class Web
    # Rack's answers. Their headers allow nothing but this page's own files.
    #
    # @api private
    module Answers
      HEADERS = {
        "cache-control" => "no-store",
        "content-security-policy" => "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; " \
                                     "frame-ancestors 'none'",
        "cross-origin-opener-policy" => "same-origin",
        "cross-origin-resource-policy" => "same-origin",
        "referrer-policy" => "same-origin",
        "x-content-type-options" => "nosniff",
        "x-frame-options" => "DENY"
      }.freeze
      TEXT = "text/plain; charset=utf-8"
      private_constant :HEADERS, :TEXT

      module_function

      # @return [Array(Integer, Hash, Array<String>)]
      def text(status, text, headers = {}) = whole(status, "#{text.chomp}\n", { "content-type" => TEXT, **headers })

      # @param report [String] JSON
      def json(report) = whole(200, report, { "content-type" => "application/json" })

      # @param content [String]
      # @param type [String]
      def asset(content, type) = whole(200, content, { "content-type" => type })

      # @param methods [Array<String>] those that the path has
      def not_allowed(methods)
        text(405, "Only #{methods.join(" and ")} are possible here.", "allow" => methods.join(", "))
      end

      # @param body [#each]
      def download(body, name:, type:, size:)
        headers = { "content-type" => type, "content-length" => size.to_s,
                    "content-disposition" => "attachment; filename=\"#{name}\"" }
        [200, { **HEADERS, **headers }, body]
      end

      # @param answer [Array] the answer to GET
      # @return [Array] the answer to HEAD
      def without_body(answer)
        status, headers, body = answer
        body.close if body.respond_to?(:close)
        [status, headers, []]
      end

      def whole(status, content, headers)
        [status, { **HEADERS, **headers, "content-length" => content.bytesize.to_s }, [content]]
      end
      private_class_method :whole
    end
    private_constant :Answers
  end
end
