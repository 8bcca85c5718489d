# frozen_string_literal: true

module Heddle
  class Pool
    class Job
      # What goes from a job that has failed to its parent. That may run on another thread.
      module Family
        # @api private
        # The error goes to the parent, wherever that waits.
        def hand_up
          @sent = @parent&.receive(@error)
        end

        # @api private
        # The parent gets the error by other means, unless it has got it.
        def retract
          @seen = !@parent.take_back(@sent) if @sent
          @sent = nil
        end

        # @api private
        # @return [Boolean] whether it has failed and its parent has been told by an exception
        def seen?
          retract
          @seen || false
        end

        protected

        def receive(error)
          @task&.scheduler&.__send__(:deliver, @task.fiber, error)
        end

        def take_back(number)
          @task.scheduler.__send__(:retract, @task.fiber, number)
        end
      end
      private_constant :Family
    end
  end
end
