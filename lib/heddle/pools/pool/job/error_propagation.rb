# frozen_string_literal: true

module Heddle
  class Pool
    class Job
      # How the error of a job reaches its parent, which may run on another thread.
      module ErrorPropagation
        # @api private
        # Raises the job's error in the parent, wherever the parent waits.
        def propagate
          @delivery = @parent&.receive(@error)
        end

        # @api private
        # Cancels {#propagate}, unless the error has been raised already.
        def retract
          @seen = !@parent.take_back(@delivery) if @delivery
          @delivery = nil
        end

        # @api private
        # @return [Boolean] whether the job's error has been raised in the parent
        def seen?
          retract
          @seen || false
        end

        protected

        # @return [Integer, nil] a number for {#take_back}
        def receive(error)
          @task&.scheduler&.__send__(:deliver, @task.fiber, error)
        end

        # @return [Boolean] false if the error has been raised already
        def take_back(number)
          @task.scheduler.__send__(:retract, @task.fiber, number)
        end
      end
      private_constant :ErrorPropagation
    end
  end
end
