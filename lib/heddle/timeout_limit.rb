# frozen_string_literal: true

require "timeout"

module Heddle # :nodoc:
  # `Timeout.timeout` without a class raises an exception inside of the block that no `rescue => e` takes, and
  # Timeout::Error outside. Until timeout 0.6.1 it does so on plain threads alone: a scheduler is asked to raise
  # Timeout::Error itself, as if the program had chosen that class. Here it is asked as timeout 0.6.1 asks it.
  #
  # Nothing changes where there is no scheduler of Heddle's.
  module TimeoutLimit
    # Does what Timeout::Error.handle_timeout does, for a timeout that has no such method (before 0.4).
    module Translator
      # Raised inside of the block.
      class ExitException < Exception # rubocop:disable Lint/InheritException
        def exception(*)
          self
        end
      end

      # @yieldparam limit [Exception] to be raised inside of the block
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

    TRANSLATOR = ::Timeout::Error.respond_to?(:handle_timeout) ? ::Timeout::Error : Translator

    # Runs the block with a time limit; see Ruby's documentation.
    def timeout(seconds, klass = nil, message = nil, &block)
      return super if klass || !Fiber.current_scheduler.is_a?(Scheduler)

      message ||= "execution expired"
      TRANSLATOR.handle_timeout(message) { |limit| super(seconds, limit, message, &block) }
    end
  end
  private_constant :TimeoutLimit

  # The same for those who include Timeout, where the method is private.
  module PrivateTimeoutLimit
    include TimeoutLimit

    private :timeout
  end
  private_constant :PrivateTimeoutLimit

  ::Timeout.singleton_class.prepend(TimeoutLimit)
  ::Timeout.prepend(PrivateTimeoutLimit)
end
