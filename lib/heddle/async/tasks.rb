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

      # @return [Fiber]
      def schedule
        scheduler = Fiber.scheduler || reactor
        return super unless scheduler.is_a?(Scheduler)

        given = @annotation
        begin
          scheduler.start do
            @fiber = Fiber.current
            @fiber.async_task = self
            annotate(given) if given
            completed!(yield)
          rescue Exception => e # rubocop:disable Lint/RescueException -- the caller of the scheduler's `run` gets it
            failure = end_by(e, scheduler)
          ensure
            finish!
            scheduler.tasks.fail_with(failure) if failure
          end
        ensure
          scheduler.task_begun
        end
      end

      # Keeps what the block has raised. What ends more than the task leaves the fiber.
      #
      # @return [Exception, nil] what is no StandardError, and ends the other tasks
      def end_by(error, scheduler)
        case error
        when ::Async::Cancel then cancel_in_fiber(error.cause || error)
        when StandardError then failed!(error)
        when Stop
          # A thread that is interrupted stops the children itself.
          Native.stopping?(scheduler) ? @promise.cancel(nil) : cancel_in_fiber(error)
          raise error
        when SystemExit, SignalException
          failed!(error)
          raise error
        else
          failed!(error)
          return error
        end
        nil
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
