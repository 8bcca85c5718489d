# frozen_string_literal: true

module Heddle
  module Async
    # Async's tasks are fibers of the scheduler here. Async makes their fibers in a private method.
    module Tasks
      # The fiber has the annotation as its name, too.
      def annotate(annotation, &block)
        return super unless current? && Fiber.scheduler.is_a?(Scheduler)
        return super { Heddle.annotate(annotation, &block) } if block

        super.tap { Heddle.annotate(annotation) }
      end

      private

      def schedule(&block)
        scheduler = Fiber.scheduler || reactor
        return super unless scheduler.is_a?(Scheduler)

        given = annotation
        scheduler.start do
          @fiber = Fiber.current
          @fiber.async_task = self
          annotate(given) if given
          run_in_fiber(scheduler, block)
        end
      ensure
        scheduler.task_begun if scheduler.is_a?(Scheduler)
      end

      # Keeps what the block comes to. What ends more than the task leaves the fiber.
      def run_in_fiber(scheduler, block)
        completed!(block.call)
      rescue ::Async::Cancel => e
        cancel_in_fiber(e.cause || e)
      rescue StandardError => e
        failed!(e)
      rescue Stop => e
        # A thread that is interrupted stops the children itself.
        Native.stopping?(scheduler) ? @promise.cancel(nil) : cancel_in_fiber(e)
        raise
      rescue SystemExit, SignalException => e
        failed!(e)
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- the caller of the scheduler's `run` gets it
        failed!(e)
        failure = e
      ensure
        finish!
        scheduler.tasks.fail_with(failure) if failure
      end

      # The children are cancelled with it. One of them may cancel it meanwhile.
      def cancel_in_fiber(cause)
        cancelled!(cause)
      rescue ::Async::Cancel
        # It is.
      end
    end
    private_constant :Tasks
  end
end
