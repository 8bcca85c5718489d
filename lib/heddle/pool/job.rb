# frozen_string_literal: true

require_relative "job/family"

module Heddle
  class Pool
    # Work that has been handed to a pool, and the fiber that does it.
    class Job
      include Family

      # Where a job's fiber, and those that it starts, find it.
      KEY = :heddle_pool_job
      private_constant :KEY

      # @api private
      # @return [Job, nil] the one that is running, if it is the pool's
      def self.current(pool)
        job = Fiber[KEY]
        job if job && job.pool.equal?(pool) && !job.ended?
      end

      # @api private
      attr_reader :pool, :parent, :children, :value, :error

      # @api private
      def initialize(pool, parent, arguments, work)
        @pool = pool
        @parent = parent
        @arguments = arguments
        @work = work
        @children = {}
        @awaitings = []
        @state = :pending
      end

      # @return [Boolean]
      def ended?
        @state == :ended
      end

      # Tells the job to end, running its `ensure`, and doesn't wait for it. One that hasn't begun never will.
      #
      # @return [self]
      def stop
        task = nil
        withdrawn = @pool.guard.synchronize do
          @stopped = true
          task = @task
          @pool.backlog.withdraw(self)
        end
        withdrawn ? conclude(nil, nil) : task&.stop
        self
      end

      # @return [String]
      def inspect
        "#<#{self.class} #{@work.source_location&.join(":")} #{@state}>"
      end

      # @api private
      # A thread has it from now on.
      def taken
        @state = :running
      end

      # @api private
      # Runs the work in a fiber of the current thread.
      def start
        scheduler = Fiber.scheduler
        task = Task.new(scheduler, parent: Task.current(scheduler), group: self)
        task.start { perform }
        @pool.guard.synchronize { @task = task }
        # Told while it was on its way here.
        task.stop if @stopped
      rescue FiberError, NoMemoryError => e
        conclude(nil, e)
      end

      # @api private
      # The fiber has ended, with all fibers that it had spun.
      def ended(task)
        conclude(task.value, task.error)
      end

      # @api private
      # @return [Boolean] whether it has ended; if not, the awaiting is told when it does
      def await(awaiting)
        @pool.guard.synchronize do
          @awaitings << awaiting unless ended?
          ended?
        end
      end

      # @api private
      def forget(awaiting)
        @pool.guard.synchronize { @awaitings.delete(awaiting) }
      end

      private

      def perform
        Fiber[KEY] = self
        value = @work.call(*@arguments)
        # What children sent while nothing was waited for must not get lost.
        @task&.scheduler&.__send__(:check)
        done = true
        value
      ensure
        stop_children(done)
      end

      # @param raises [Boolean] whether there is no other error on its way
      def stop_children(raises)
        failed = Heddle.shield { Awaiting.new(@pool, self, unfinished).stop }
        raise failed.error if failed && raises
      end

      def unfinished
        @pool.guard.synchronize { @children.keys }.reject(&:ended?)
      end

      def conclude(value, error)
        awaitings = @pool.guard.synchronize do
          @value = value
          @error = error
          @state = :ended
          @awaitings.slice!(0..)
        end
        claims = awaitings.map { |awaiting| awaiting.ended(self) }
        hand_up if error && @parent && claims.none?
        @pool.backlog.ended
      end
    end
  end
end
