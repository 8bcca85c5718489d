# frozen_string_literal: true

module Heddle
  # Checks the arguments of public methods. Each error message names the method, the wrong value and what is allowed.
  module ArgumentChecks
    module_function

    # @param value [Object] a duration
    # @param method [String] the public method, for the message
    # @return [Numeric] the duration, if `sleep` accepts it
    # @raise [TypeError, ArgumentError]
    def seconds(value, method)
      unless value.is_a?(Numeric) && value.real?
        raise TypeError, "#{method}: seconds must be an Integer, a Float or a Rational, not #{value.inspect}"
      end
      # `infinite?` alone would accept NaN, which is neither finite nor infinite.
      return value if value.finite? && !value.negative?

      raise ArgumentError, "#{method}: seconds must be finite and not negative, not #{value.inspect}"
    end

    # @param value [Object] a number of threads, permits or items
    # @param method [String]
    # @param range [Range] the valid numbers
    # @return [Integer] the number
    # @raise [TypeError, ArgumentError]
    def count(value, method, range = 1..)
      return value if value.is_a?(Integer) && range.cover?(value)

      error = value.is_a?(Integer) ? ArgumentError : TypeError
      valid = range.end ? "from #{range.begin} to #{range.end}" : "of at least #{range.begin}"
      raise error, "#{method}: must be an Integer #{valid}, not #{value.inspect}"
    end

    # @param value [Object] an option
    # @param method [String]
    # @param allowed [Array<Symbol>] two or more
    # @return [Symbol] the option
    # @raise [ArgumentError]
    def one_of(value, method, allowed)
      return value if allowed.include?(value)

      *most, last = allowed.map(&:inspect)
      raise ArgumentError, "#{method}: must be #{most.join(", ")} or #{last}, not #{value.inspect}"
    end

    # Tries the options of a scheduler that another thread makes later.
    #
    # @param options [Hash] see {Scheduler#initialize}
    # @raise (see Scheduler#initialize)
    def scheduler_options(options)
      Scheduler.new(**options).close unless options.empty?
    end

    # @param given [Object] the block, or whether there is one
    # @raise [ArgumentError]
    def block(given, method)
      raise ArgumentError, "#{method} needs a block" unless given
    end

    # @raise [TypeError]
    def fiber(value, method)
      raise TypeError, "#{method}: #{value.inspect} is not a Fiber" unless value.is_a?(Fiber)
    end

    # @return [Class, Exception] an argument for `raise`
    # @raise [TypeError]
    def exception(value, method)
      return value if value.is_a?(Exception) || (value.is_a?(Class) && value <= Exception)

      raise TypeError, "#{method}: the error must be an Exception or a class of exceptions, not #{value.inspect}"
    end
  end
  private_constant :ArgumentChecks
end
