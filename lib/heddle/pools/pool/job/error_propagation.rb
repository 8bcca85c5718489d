# frozen_string_literal: true

module Heddle
  class Pool
    class Job
      # How the error of a job reaches its parent, which may run on another thread.
      module ErrorPropagation
        # @api private
        # Raises the job's error in the parent, wherever the parent waits. Without a parent, the pool keeps it.
        def propagate
          return @delivery = @parent.receive(@error) if @parent

          @pool.guard.synchronize { @pool.forget(self, keep: true) }
        end

        # @api private
        # Cancels {#propagate}, unless the error has been raised already.
        def retract
          @parent.take_back(@delivery) if @delivery
          @delivery = nil
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
