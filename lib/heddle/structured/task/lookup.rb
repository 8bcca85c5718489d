# frozen_string_literal: true

module Heddle
  class Task
    # Finds, and makes, the tasks of fibers.
    module Lookup
      VARIABLE = :@heddle_task
      private_constant :VARIABLE

      # @return [Task, nil] the fiber's task
      def of(fiber)
        fiber.instance_variable_get(VARIABLE)
      end

      # Makes `task` the fiber's task.
      def assign(fiber, task)
        fiber.instance_variable_set(VARIABLE, task)
      end

      # @return [Task] the current fiber's task; it is made if need be
      def current(scheduler)
        task = of(Fiber.current)
        task ? task.tap { |known| known.reset_after_fork(scheduler) } : adopt(Fiber.current, scheduler)
      end

      # Makes a task for a fiber of `Fiber.schedule`. The scheduler reports the fiber's end to the task.
      #
      # @return [Task, nil] nil if the fiber is not one of this scheduler's
      def observe(fiber, scheduler)
        task = new(scheduler)
        return unless scheduler.__send__(:observe_exit, fiber, task)

        task.tap { |observer| observer.assign_to(fiber) }
      end

      # @return [Task] of the thread's root fiber. It lasts as long as the scheduler. Fibers that cannot report their
      #   end share it.
      def root(scheduler)
        scheduler.instance_variable_get(VARIABLE) || scheduler.instance_variable_set(VARIABLE, new(scheduler))
      end

      # Ends the root's children.
      #
      # @return [Exception, nil] their first error that has not been raised elsewhere
      def end_root(scheduler)
        root = scheduler.instance_variable_get(VARIABLE)
        return unless root

        root.reset_after_fork(scheduler)
        root.fiber = Fiber.current
        root.end_children || undelivered(scheduler)
      end

      # @return [Integer] the sequence number for a task that ends now
      def next_end_number
        @end_numbers = (@end_numbers || 0) + 1
      end

      private

      # @return [Exception, nil] what was sent to the root while it did not wait
      def undelivered(scheduler)
        scheduler.__send__(:raise_deferred)
        nil
      rescue SignalException
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised when the scheduler is closed
        e
      end

      def adopt(fiber, scheduler)
        observe(fiber, scheduler) || (fiber.blocking? ? adopt_root(fiber, scheduler) : adopt_generator(scheduler))
      end

      def adopt_root(fiber, scheduler)
        root(scheduler).tap { |task| task.fiber ||= fiber }
      end

      # A fiber that another fiber has resumed: the fibers that it spins are children of that other fiber.
      def adopt_generator(scheduler)
        resumer = scheduler.__send__(:current_fiber)
        (resumer && (of(resumer) || observe(resumer, scheduler))) || root(scheduler)
      end
    end
    private_constant :Lookup
  end
end
