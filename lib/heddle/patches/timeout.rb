# frozen_string_literal: true

require "timeout"

module Heddle # :nodoc:
  # Does what Timeout::Error.handle_timeout does, for versions of timeout without that method (before 0.4). Not in the
  # module that is prepended: its constants would be Timeout's, too.
  #
  # @api private
  module TimeoutTranslator
    # Raised inside the block.
    class ExitException < Exception # rubocop:disable Lint/InheritException
      def exception(*)
        self
      end
    end

    # @param message [String]
    # @yieldparam limit [Exception] to be raised inside the block
    # @return [Object] the block's value
    # @raise [Timeout::Error] if `limit` leaves the block
    def self.handle_timeout(message)
      limit = ExitException.new(message)
      begin
        yield limit
      rescue ExitException => e
        raise ::Timeout::Error, message if e.equal?(limit)

        raise
      end
    end
  end

  # Which fibers run a block with a time limit that a thread of Ruby's watches. The extension reads the mark.
  #
  # @api private
  module TimeLimited
    VARIABLE = :@heddle_time_limited

    # @param fiber [Fiber] the current one
    # @return [Object] the block's value
    def self.mark(fiber)
      before = fiber.instance_variable_get(VARIABLE)
      begin
        fiber.instance_variable_set(VARIABLE, true)
        yield
      ensure
        fiber.instance_variable_set(VARIABLE, before)
      end
    end
  end
  private_constant :TimeLimited

  TIMEOUT_TRANSLATOR = ::Timeout::Error.respond_to?(:handle_timeout) ? ::Timeout::Error : TimeoutTranslator
  private_constant :TimeoutTranslator, :TIMEOUT_TRANSLATOR

  # Makes `Timeout.timeout` raise the same exceptions in a fiber as in a plain thread.
  #
  # Called without a class, it raises an exception inside the block that `rescue => e` does not rescue, and
  # Timeout::Error outside. Before timeout 0.6.1 this holds for plain threads only: a scheduler is asked to raise
  # Timeout::Error inside the block. This patch asks the scheduler as timeout 0.6.1 does.
  #
  # In a blocking fiber, and in `Fiber.blocking`, Ruby's thread raises at the end of the limit, as it does without a
  # scheduler. The fiber is marked meanwhile: the exception is meant for it, and for no other fiber of the thread.
  #
  # Nothing changes under other schedulers, or without one.
  module TimeoutPatch
    # Runs the block with a time limit; see Ruby's documentation.
    def timeout(seconds, klass = nil, message = nil, &block)
      scheduler = Fiber.current_scheduler
      if scheduler.nil? && Fiber.scheduler.is_a?(Scheduler)
        return TimeLimited.mark(Fiber.current) { super(seconds, klass, message, &block) }
      end
      return super if klass || !scheduler.is_a?(Scheduler)

      message ||= "execution expired"
      TIMEOUT_TRANSLATOR.handle_timeout(message) { |limit| super(seconds, limit, message, &block) }
    end
  end
  private_constant :TimeoutPatch

  # The same for classes that include Timeout, where the method is private.
  module PrivateTimeoutPatch
    include TimeoutPatch

    private :timeout
  end
  private_constant :PrivateTimeoutPatch

  Patches.add do
    ::Timeout.singleton_class.prepend(TimeoutPatch)
    ::Timeout.prepend(PrivateTimeoutPatch)
  end
end
