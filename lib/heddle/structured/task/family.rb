# frozen_string_literal: true

module Heddle
  class Task
    # Parents and children.
    module Family
      # A child is going to begin.
      def add(child)
        @children[child] = true
      end

      # A child has ended.
      def remove(child)
        @children.delete(child)
        @scheduler.unblock(self, @fiber) if @ending && @children.empty?
      end

      # Whether another fiber waits for its end, as a parent does, or is going to. A root's wait is none of a fiber's.
      def awaited?
        return false if ended?

        !@awaits.empty? || !(@parent.nil? || @parent.fiber.nil? || @parent.fiber.blocking?)
      end

      # An error that a child has not handled: it is raised wherever this fiber waits.
      #
      # @return [Integer, nil] by which it can be taken back
      def receive(error)
        number = @scheduler.__send__(:deliver, @fiber, error) if @fiber && !@ending && !ended?
        @late ||= error unless number
        number
      end

      # An error of a child's will be raised by other means.
      def take_back(number)
        @scheduler.__send__(:retract, @fiber, number)
      end

      # Its own error is, or is to be, raised in the parent.
      def hand_up
        @sent = @parent&.receive(@error)
      end

      # No longer: that happens by other means.
      #
      # @return [Boolean] false if it is too late, or there was nothing to take back
      def retract
        due = @sent && @parent.take_back(@sent)
        @sent = nil
        due || false
      end

      # Ends the children, running their `ensure`, and waits for that. Nobody can break into it, but the thread's own
      # interrupts.
      #
      # @return [Exception, nil] the first error of those that ended meanwhile
      def end_children
        return take_late if @children.empty?

        @ending = true
        @scheduler.__send__(:hold_back) do
          stop_children
          wait_for_children
        end
        take_late
      ensure
        @ending = false
      end

      private

      def stop_children
        # A copy, since they may end meanwhile.
        @children.keys.each(&:stop) # rubocop:disable Style/HashEachMethods
      end

      def wait_for_children
        @scheduler.block(self, nil) until @children.empty?
      rescue SignalException
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised when the children have ended
        @late ||= e
        retry
      end

      def take_late
        @late.tap { @late = nil }
      end
    end
    private_constant :Family
  end
end
