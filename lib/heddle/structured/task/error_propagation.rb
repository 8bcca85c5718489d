# frozen_string_literal: true

module Heddle
  class Task
    # How the error of a child reaches its parent.
    module ErrorPropagation
      # Raises a child's unhandled error wherever this fiber waits, or stores it if the fiber is ending.
      #
      # @param child [Task]
      # @return [Integer, nil] a number for {#take_back}; nil if the error was stored
      def receive(child)
        number = @scheduler.__send__(:deliver, @fiber, child.error) if @fiber && !@ending && !ended?
        number ? note_received(child, number) : @late_error ||= child.error
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
        @delivery = @parent&.receive(self)
      end

      # Cancels {#propagate}, because the error is raised by other means.
      #
      # @return [Boolean] false if the error has been raised already, or was not sent
      def retract
        retracted = @delivery && @parent.take_back(@delivery)
        @delivery = nil
        retracted || false
      end

      private

      # An error of a scope's child is meant for the scope alone; see {#drop_received}.
      def note_received(child, number)
        (@received ||= []).push([child.depth, number]) if child.depth.positive?
      end

      # A scope of this depth ends, perhaps by another error: the errors of its children that have not been raised are
      # dropped.
      def drop_received(depth)
        dropped, @received = @received&.partition { |other, _| other >= depth }
        dropped&.each { |received| take_back(received.last) }
      end
    end
    private_constant :ErrorPropagation
  end
end
