# frozen_string_literal: true

require "timeout"

module Heddle
  # `Timeout.timeout` without a class raises an exception inside of the block that no `rescue => e` takes, and
  # Timeout::Error outside. Until timeout 0.6.1 it does so on plain threads alone: a scheduler is asked to raise
  # Timeout::Error itself, as if the program had chosen that class. Here it is asked as timeout 0.6.1 asks it.
  #
  # Nothing changes where there is no scheduler of Heddle's.
  module TimeoutLimit
    # Raised inside of the block where timeout has no such class (before 0.4).
    class Exit < Exception # rubocop:disable Lint/InheritException
      def exception(*)
        self
      end
    end

    # What the block is left with.
    #
    # @yieldparam limit [Exception] to be raised inside
    # @return [Object] the block's value
    # @raise [Timeout::Error] if `limit` leaves the block
    def self.translate(message, &)
      return ::Timeout::Error.handle_timeout(message, &) if ::Timeout::Error.respond_to?(:handle_timeout)

      limit = Exit.new(message)
      begin
        yield limit
      rescue Exit => e
        raise ::Timeout::Error, message if e.equal?(limit)

        raise
      end
    end

    # Runs the block with a time limit; see Ruby's documentation.
    def timeout(seconds, klass = nil, message = nil, &block)
      return super if klass || !Fiber.current_scheduler.is_a?(Scheduler)

      message ||= "execution expired"
      TimeoutLimit.translate(message) { |limit| super(seconds, limit, message, &block) }
    end
  end
  private_constant :TimeoutLimit

  # The method that is a Timeout's, for those who include it.
  module PrivateTimeoutLimit
    include TimeoutLimit

    private :timeout
  end
  private_constant :PrivateTimeoutLimit

  ::Timeout.singleton_class.prepend(TimeoutLimit)
  ::Timeout.prepend(PrivateTimeoutLimit)
end
