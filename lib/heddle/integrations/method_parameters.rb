# frozen_string_literal: true

module Heddle
  # Which arguments a method takes.
  #
  # @api private
  class MethodParameters
    MARKS = { req: "%s", opt: "%s = …", rest: "*%s", keyreq: "%s:", key: "%s: …", keyrest: "**%s", block: "&%s" }.freeze
    private_constant :MARKS

    # @param method [UnboundMethod]
    def initialize(method)
      @list = method.parameters
      @names = Hash.new([].freeze).merge(@list.group_by(&:first).transform_values { |each| each.map(&:last) })
    end

    # @param count [Integer] of positional arguments
    # @param keywords [Array<Symbol>]
    # @return [Boolean]
    def take?(count, keywords)
      (rest? || count <= positional.last) && count >= positional.first && (@names[:keyreq] - keywords).empty? &&
        (keyrest? || (keywords - self.keywords).empty?)
    end

    # @param other [MethodParameters]
    # @return [Boolean] whether these take whatever the others take
    def cover?(other)
      return false if (other.rest? && !rest?) || (other.keyrest? && !keyrest?)

      other.positional.all? { |count| take?(count, other.keywords) }
    end

    # @return [String] as Ruby writes them
    def to_s
      "(#{@list.map { |kind, name| format(MARKS.fetch(kind, "%s"), name || "_") }.join(", ")})"
    end

    # @return [Array<Integer>] the lowest and the highest number of positional arguments, not counting `*rest`
    def positional = [@names[:req].size, @names[:req].size + @names[:opt].size]

    # @return [Array<Symbol>]
    def keywords = @names[:keyreq] + @names[:key]

    # @return [Boolean]
    def rest? = @names.key?(:rest)

    # @return [Boolean]
    def keyrest? = @names.key?(:keyrest)
  end
  private_constant :MethodParameters
end
