# frozen_string_literal: true

module Heddle
  class Web
    # What a request to `fibers.json` wants to see.
    #
    # @api private
    class FiberFilter
      STATES = %w[running runnable waiting].freeze
      ORDERS = %w[tree longest age].freeze
      ONLY = %w[named].freeze
      # How many fibers are sent, and how many a request may ask for.
      LIMIT = 200
      LIMITS = 1..1000
      private_constant :STATES, :ORDERS, :ONLY, :LIMIT, :LIMITS

      # @return [Integer] how many fibers are sent at most
      attr_reader :limit
      # @return [String] `tree`, `longest`: in its state, or `age`
      attr_reader :order

      # @param parameters [Hash{String => String}] the request's: `q`, `state`, `only`, `order` and `limit`
      # @param mount [String] see {OwnRequests#initialize}
      # @raise [ArgumentError] for an invalid one
      def initialize(parameters, mount)
        @own_requests = OwnRequests.new(mount)
        @text = Text.clean(parameters["q"]).to_s.strip.downcase
        @state = Parameters.one_of(parameters, "state", STATES)&.to_sym
        @only = Parameters.one_of(parameters, "only", ONLY)
        @order = Parameters.one_of(parameters, "order", ORDERS) || "tree"
        @limit = Parameters.number(parameters, "limit", LIMITS, LIMIT)
      end

      # @return [Array] equal for filters that let the same fibers through
      def key = [@text, @state, @only, @order, @limit]

      # @return [Boolean] whether fibers are sent after their parents
      def tree? = @order == "tree"

      # @return [Boolean] whether all fibers match
      def none? = @text.empty? && @state.nil? && @only.nil?

      # @param entry [Snapshots::Entry]
      # @param description [WaitDescription]
      # @return [Boolean] whether the fiber is in the wanted state, and its name, its id or what it waits for contains
      #   the text
      def match?(entry, description)
        return false if @state && entry.state != @state
        return false if @only && !named?(entry)

        @text.empty? || found?(entry, description)
      end

      private

      # Requests and jobs are, and what the program names.
      def named?(entry)
        name = entry.name
        !name.nil? && !Names.own?(name) && !@own_requests.include?(name)
      end

      def found?(entry, description)
        contains?(entry.name) || entry.fiber.object_id.to_s == @text || contains?(description.of(entry)) ||
          contains?(Backtraces.place(entry.program_block))
      end

      def contains?(text) = text ? Text.clean(text).downcase.include?(@text) : false
    end
    private_constant :FiberFilter
  end
end
