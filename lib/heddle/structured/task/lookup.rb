# frozen_string_literal: true

module Heddle
  class Task
    # Which fiber has which task.
    module Lookup
      VARIABLE = :@heddle_task
      private_constant :VARIABLE

      # @return [Task, nil] the fiber's, if it has one
      def of(fiber)
        fiber.instance_variable_get(VARIABLE)
      end

      # The fiber has this task from now on.
      def assign(fiber, task)
        fiber.instance_variable_set(VARIABLE, task)
      end

      # @return [Task] that of the fiber that runs
      def current(scheduler)
        task = of(Fiber.current)
        task ? task.tap { |known| known.follow_fork(scheduler) } : adopt(Fiber.current, scheduler)
      end

      # Gives the fiber a task if it has been started by `Fiber.schedule`.
      #
      # @return [Task, nil]
      def watch(fiber, scheduler)
        task = new(scheduler)
        return unless scheduler.__send__(:watch, fiber, task)

        task.tap { |known| known.belong_to(fiber) }
      end

      # The thread's root fiber, and all that can't tell of their end, have the thread for their life.
      def root(scheduler)
        scheduler.instance_variable_get(VARIABLE) || scheduler.instance_variable_set(VARIABLE, new(scheduler))
      end

      # The end of the root's children.
      #
      # @return [Exception, nil] the first error of theirs that nobody has taken
      def end_root(scheduler)
        root = scheduler.instance_variable_get(VARIABLE)
        return unless root

        root.follow_fork(scheduler)
        root.fiber = Fiber.current
        root.end_children || undelivered(scheduler)
      end

      # @return [Integer] the how manieth task it is that ends now
      def next_rank
        @ranks = (@ranks || 0) + 1
      end

      private

      # What was sent to the root while it had no reason to wait.
      def undelivered(scheduler)
        scheduler.__send__(:check)
        nil
      rescue SignalException
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised when the scheduler is closed
        e
      end

      def adopt(fiber, scheduler)
        watch(fiber, scheduler) || (fiber.blocking? ? adopt_root(fiber, scheduler) : adopt_generator(scheduler))
      end

      def adopt_root(fiber, scheduler)
        root(scheduler).tap { |task| task.fiber ||= fiber }
      end

      # A fiber that another one has resumed: what it spins belongs to that one.
      def adopt_generator(scheduler)
        resumer = scheduler.__send__(:running)
        (resumer && (of(resumer) || watch(resumer, scheduler))) || root(scheduler)
      end
    end
    private_constant :Lookup
  end
end
