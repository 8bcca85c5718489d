# frozen_string_literal: true

module Heddle
  # Looks at what callers pass. The messages name the method, what was wrong, and what would be right.
  module Checks
    module_function

    # @return [Numeric] the seconds, if `sleep` could take so many
    def seconds(value, method)
      unless value.is_a?(Numeric) && value.real?
        raise TypeError, "#{method}: seconds must be an Integer, a Float or a Rational, not #{value.inspect}"
      end
      # Not `infinite?` alone: NaN is neither finite nor infinite.
      return value if value.finite? && !value.negative?

      raise ArgumentError, "#{method}: seconds must be finite and not negative, not #{value.inspect}"
    end

    # @return [Integer] the number, if it is one from `least` on
    def count(value, method, least: 1)
      return value if value.is_a?(Integer) && value >= least

      error = value.is_a?(Integer) ? ArgumentError : TypeError
      raise error, "#{method}: must be an Integer from #{least} on, not #{value.inspect}"
    end

    def block(given, method)
      raise ArgumentError, "#{method} needs a block" unless given
    end

    def fiber(value, method)
      raise TypeError, "#{method}: #{value.inspect} is not a Fiber" unless value.is_a?(Fiber)
    end

    # @return [Class, Exception] what can be raised
    def exception(value, method)
      return value if value.is_a?(Exception) || (value.is_a?(Class) && value <= Exception)

      raise TypeError, "#{method}: an exception, or a class of exceptions, is needed, not #{value.inspect}"
    end
  end
  private_constant :Checks
end
