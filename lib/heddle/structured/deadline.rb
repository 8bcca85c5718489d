# frozen_string_literal: true

module Heddle
  # The time limit of a block, which {cancel_after} and {move_on_after} pass to the block. It can be moved while the
  # block runs.
  #
  # @example Five seconds for each line, instead of for all of them
  #   Heddle.cancel_after(5) do |deadline|
  #     while (line = socket.gets)
  #       deadline.reset
  #       handle(line)
  #     end
  #   end
  class Deadline
    # @return [Float, Integer, Rational] the limit in seconds, as it was last set
    attr_reader :seconds

    # @api private
    # @return [Exception] what is raised in the block
    attr_reader :exception

    # @api private
    # @param exception [Class, Exception] what is raised in the block when the limit has elapsed; a class if there is a
    #   method
    # @param method [String, nil] the method for the exception's message
    def initialize(scheduler, seconds, exception, method = nil)
      @scheduler = scheduler
      @seconds = seconds
      @method = method
      @exception = method ? exception.new(message(seconds)) : exception
    end

    # @return [Float] the seconds until the limit; 0.0 if it has elapsed
    def remaining
      [@due - Context.now, 0.0].max.to_f
    end

    # Moves the limit: from now on it is `seconds` from now. Any fiber or thread may call this.
    #
    # @param seconds [Float, Integer, Rational] by default the limit as it was last set
    # @return [Boolean] false if it is too late: the block has ended, or the exception has been raised in it
    # @raise [ArgumentError] for seconds that are negative, infinite or NaN
    # @raise [TypeError] for seconds that are not a number
    # @example
    #   deadline.reset(30) if request.upload?
    def reset(seconds = @seconds) # rubocop:disable Naming/PredicateMethod -- it is an action
      ArgumentChecks.seconds(seconds, "Heddle::Deadline#reset")
      exception = @method && seconds != @seconds ? @exception.class.new(message(seconds)) : @exception
      return false unless Native.move_limit(@scheduler, @number, seconds, exception)

      @seconds = seconds
      @exception = exception
      @due = Context.now + seconds
      true
    end

    # @return [String]
    def inspect
      "#<#{self.class} seconds=#{seconds} remaining=#{remaining.round(3)}>"
    end

    # @api private
    # Runs the block with the limit.
    #
    # @return [Object] the block's value
    def limit(block)
      return Native.limit(@scheduler, @seconds, @exception) { block.call } unless taken_by?(block)

      @due = Context.now + @seconds
      Native.limit(@scheduler, @seconds, @exception) do |number|
        @number = number
        block.call(self)
      end
    end

    private

    def message(seconds)
      "#{@method}: #{seconds} s elapsed"
    end

    # A lambda, such as that of a method, takes only what it asks for.
    def taken_by?(block)
      return false if (arity = block.arity).zero?

      !block.lambda? || arity == 1 || arity == -2
    end
  end
end
