# frozen_string_literal: true

module Heddle
  class Task
    # How the error of a child reaches its parent.
    module ErrorPropagation
      # Raises a child's unhandled error wherever this fiber waits, or stores it if the fiber is ending.
      #
      # @param error [Exception]
      # @return [Integer, nil] a number for {#take_back}; nil if the error was stored
      def receive(error)
        number = @scheduler.__send__(:deliver, @fiber, error) if @fiber && !@ending && !ended?
        @late_error ||= error unless number
        number
      end

      # Cancels {#receive}, because the error is raised by other means.
      #
      # @param number [Integer] what {#receive} returned
      # @return [Boolean] false if the error has been raised already
      def take_back(number)
        @scheduler.__send__(:retract, @fiber, number)
      end

      # Sends the task's error to the parent.
      def propagate
        @delivery = @parent&.receive(@error)
      end

      # Cancels {#propagate}, because the error is raised by other means.
      #
      # @return [Boolean] false if the error has been raised already, or was not sent
      def retract
        retracted = @delivery && @parent.take_back(@delivery)
        @delivery = nil
        retracted || false
      end
    end
    private_constant :ErrorPropagation
  end
end
