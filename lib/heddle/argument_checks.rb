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
    # @param least [Integer] the smallest valid number
    # @return [Integer] the number
    # @raise [TypeError, ArgumentError]
    def count(value, method, least: 1)
      return value if value.is_a?(Integer) && value >= least

      error = value.is_a?(Integer) ? ArgumentError : TypeError
      raise error, "#{method}: must be an Integer of at least #{least}, not #{value.inspect}"
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
