# frozen_string_literal: true

module Heddle
  module Async
    # Async's tasks are fibers of the scheduler here. Async makes their fibers in a private method.
    module Tasks
      # A task's fiber. It is made as by Ruby's own `Fiber.new`, without the part that Async prepends to it: that stores
      # an annotation, which the fiber gets when it has begun.
      class TaskFiber < Fiber
        initialize = Fiber.instance_method(:initialize)
        initialize = initialize.super_method if initialize.owner.name == "Fiber::Annotation"
        define_method(:initialize, initialize)
      end
      # What the fibers run. A block for each of them would be two objects more.
      BODY = proc do
        fiber = Fiber.current
        fiber.async_task.run_in(fiber)
      end
      private_constant :TaskFiber, :BODY

      # The fiber has the annotation as its name, too.
      def annotate(annotation, &block)
        return super unless current? && Fiber.scheduler.is_a?(Scheduler)
        return super { Heddle.annotate(annotation, &block) } if block

        super.tap { Heddle.annotate(annotation) }
      end

      # What the task's fiber runs.
      #
      # @api private
      # @param fiber [Fiber] the current fiber
      def run_in(fiber)
        @fiber = fiber
        block = @block
        @block = nil
        given = @annotation
        annotate(given) if given
        completed!(block.call) if block
      rescue Exception => e # rubocop:disable Lint/RescueException -- the caller of the scheduler's `run` gets it
        scheduler = Fiber.scheduler || reactor
        failure = end_by(e, scheduler)
      ensure
        finish!
        scheduler.tasks.fail_with(failure) if failure
      end

      private

      # @return [Fiber]
      def schedule(&block)
        scheduler = Fiber.scheduler || reactor
        return super unless scheduler.is_a?(Scheduler)

        @block = block
        fiber = TaskFiber.new(&FiberBody::CODE)
        fiber.async_task = self
        begin
          Native.start_task(scheduler, fiber, BODY)
        ensure
          # It has not ended, and waits.
          scheduler.task_begun if @parent
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
