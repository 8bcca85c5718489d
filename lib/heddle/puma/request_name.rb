# frozen_string_literal: true

module Heddle
  module PumaSupport
    # The name of a request, as dumps, traces, metrics, the dashboard and the log show it. Clients choose paths, and
    # some paths are secret: links for a new password, invitations, addresses of files. So what is neither a word nor a
    # short number becomes `:id`, and the query is left out.
    #
    # @api private
    module RequestName
      # `users`, `my-first-post`, `robots.txt`, `v2`, `MakeHat`, `7`. A random text of some length has capitals or
      # digits where these have none. Nothing is tried twice: the groups give nothing back.
      WORD = %r{(?>(?:[a-z]{1,20}|[a-z]{1,8}\d{1,2}|[A-Z]?[a-z]{2,20}(?:[A-Z][a-z]{2,20}){0,4}|[A-Z]{1,3}|\d{1,9})
                   (?=[-_./]|\z))}x
      PART = /(?>#{WORD}(?:[-_.]#{WORD})*)/
      PLAIN_PART = /\A#{PART}\z/
      PLAIN = %r{\A(?:\*|(?>(?:/#{PART}?)*))\z}
      # The end of a part that is replaced, which tells the kind of file.
      EXTENSION = /\.[a-z]{2,5}\z/
      LONGEST = 200
      private_constant :WORD, :PART, :PLAIN_PART, :PLAIN, :EXTENSION, :LONGEST

      # @param env [Hash] Rack's environment
      # @return [String] frozen
      def self.of(env)
        path = env["REQUEST_PATH"] || env["PATH_INFO"]
        path = path.byteslice(0, LONGEST) if path.bytesize > LONGEST
        path = path.b unless path.ascii_only?
        unless PLAIN.match?(path)
          path = path.gsub(%r{[^/]+}) { |part| PLAIN_PART.match?(part) ? part : ":id#{part[EXTENSION]}" }
        end
        "#{env["REQUEST_METHOD"]} #{path}".freeze
      end
    end
  end
end
