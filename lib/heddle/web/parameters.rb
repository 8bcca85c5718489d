# frozen_string_literal: true

module Heddle
  class Web
    # Reads the parameters of requests.
    #
    # @api private
    module Parameters
      module_function

      # @param values [Array<String>] the valid ones
      # @return [String, nil] nil if the request does not have it
      # @raise [ArgumentError]
      def one_of(parameters, name, values)
        value = parameters[name].to_s
        return if value.empty?
        return value if values.include?(value)

        raise ArgumentError, "#{name}: must be #{"one of " if values.size > 1}#{values.join(", ")}, " \
                             "not #{Text.clean(value).inspect}"
      end

      # @param range [Range] the valid ones
      # @return [Integer]
      # @raise [ArgumentError]
      def number(parameters, name, range, default)
        text = parameters[name].to_s
        return default if text.empty?

        number = Integer(text, 10, exception: false)
        return number if range.cover?(number)

        raise ArgumentError, "#{name}: must be #{range.min} to #{range.max}, not #{Text.clean(text).inspect}"
      end
    end
    private_constant :Parameters
  end
end
