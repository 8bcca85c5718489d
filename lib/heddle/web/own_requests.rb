# frozen_string_literal: true

module Heddle
  class Web
    # Tells the requests of open pages, which ask each second, from those of the application.
    #
    # @api private
    class OwnRequests
      # @param mount [String] where the application is mounted, as `SCRIPT_NAME` has it
      def initialize(mount)
        @mount = mount.b
      end

      # @param name [String, nil] a fiber's, such as `GET /heddle/stats.json`
      # @return [Boolean]
      def include?(name)
        verb, path = name&.b&.split(" ", 2)
        return false unless path && VERBS.include?(verb) && path.start_with?(@mount)

        Web.path?(path.delete_prefix(@mount))
      end

      VERBS = %w[GET HEAD POST].freeze
      private_constant :VERBS
    end
    private_constant :OwnRequests
  end
end
