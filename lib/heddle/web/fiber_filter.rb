# frozen_string_literal: true

module Heddle
  class Web
    # What a request to `fibers.json` wants to see.
    #
    # @api private
    class FiberFilter
      STATES = %w[running runnable waiting].freeze
      ORDERS = %w[tree longest].freeze
      # How many fibers are sent, and how many a request may ask for.
      LIMIT = 200
      LIMITS = 1..1000
      # How many fibers are sent with their backtraces.
      OPEN = 50
      private_constant :STATES, :ORDERS, :LIMIT, :LIMITS, :OPEN

      # @return [Integer] how many fibers are sent at most
      attr_reader :limit
      # @return [Array<Integer>] the ids of the fibers that are sent with their backtraces
      attr_reader :open

      # @param parameters [Hash{String => String}] the request's: `q`, `state`, `order`, `limit`, and `open`, ids with
      #   commas between them
      # @raise [ArgumentError] for an invalid one
      def initialize(parameters)
        @text = Text.clean(parameters["q"]).to_s.strip.downcase
        @state = one_of(STATES, parameters, "state")&.to_sym
        @order = one_of(ORDERS, parameters, "order") || "tree"
        @limit = number(parameters["limit"], LIMITS, LIMIT)
        @open = parameters["open"].to_s.split(",").first(OPEN).map(&:to_i)
      end

      # @return [Boolean] whether fibers are sent after their parents
      def tree? = @order == "tree"

      # @return [Boolean] whether all fibers match
      def none? = @text.empty? && @state.nil?

      # @param entry [Snapshots::Entry]
      # @param description [WaitDescription]
      # @return [Boolean] whether the fiber is in the wanted state, and its name, its id or what it waits for contains
      #   the text
      def match?(entry, description)
        return false if @state && entry.state != @state
        return true if @text.empty?

        contains?(Names.of(entry.fiber)) || entry.fiber.object_id.to_s == @text || contains?(description.of(entry)) ||
          contains?(Backtraces.place(entry.program_block))
      end

      private

      def contains?(text) = text ? Text.clean(text).downcase.include?(@text) : false

      def one_of(values, parameters, name)
        value = parameters[name].to_s
        return if value.empty?
        return value if values.include?(value)

        raise ArgumentError, "#{name}: must be one of #{values.join(", ")}, not #{Text.clean(value).inspect}"
      end

      def number(text, range, default)
        return default if text.to_s.empty?

        number = Integer(text, 10, exception: false)
        return number if range.cover?(number)

        raise ArgumentError, "limit: must be #{range.min} to #{range.max}, not #{Text.clean(text).inspect}"
      end
    end
    private_constant :FiberFilter
  end
end
