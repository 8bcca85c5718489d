# frozen_string_literal: true

module Heddle
  # The dashboard's place where Heddle cannot run: a route that mounts it answers 503.
  class Web
    class << self
      # Forgets the rule.
      def authorize = nil

      # @param _env [Hash] Rack's environment
      # @return [Array(Integer, Hash, Array)] Rack's response
      def call(_env)
        [503, { "content-type" => "text/plain" }, ["There is nothing to show: Heddle #{Extension.missing}.\n"]]
      end

      # @return [Boolean] false
      def refuses? = false
    end
  end
end
