# frozen_string_literal: true

module Heddle
  class Pool
    # A block that a {Pool} runs, and the fiber that runs it.
    class Job
      # The fiber storage in which a job's fiber, and the fibers that it starts, find the job.
      KEY = :heddle_pool_job
      private_constant :KEY

      # @api private
      # @return [Job, nil] the current job, if it is one of the pool's
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
        @context = WorkContext.capture
        @work = work
        @children = {}
        @waits = []
        @state = :pending
        @generation = Native.generation
      end

      # @return [Boolean] also true in a forked child for a job that had not ended in its parent
      def ended?
        @state == :ended || @generation != Native.generation
      end

      # Waits for the job's end.
      #
      # @return [Object] the block's value; nil for a job that was stopped
      # @raise the error that ends it
      # @raise [ThreadError] if its thread was killed
      # @raise [FiberError] for the calling job
      # @example
      #   page = pool.go { fetch(url) }.await
      def await
        @pool.await_all(self).first
      end

      # Stops the job, running its `ensure`, and does not wait for its end. A job that has not started never starts.
      #
      # @return [self]
      def terminate
        Guard.uninterrupted do
          task = nil
          withdrawn = @pool.guard.synchronize do
            @stopped = true
            task = @task
            @pool.backlog.withdraw(self)
          end
          withdrawn ? conclude(nil, nil) : task&.stop
        end
        self
      end

      # @return [String]
      def inspect
        "#<#{self.class} #{@work.source_location&.join(":")} #{@state}>"
      end

      # @api private
      # A thread has taken the job.
      def taken
        @state = :running
      end

      # @api private
      # Runs the work in a fiber of the current thread.
      def start
        scheduler = Fiber.scheduler
        task = Task.new(scheduler, parent: Task.current(scheduler), group: self, context: @context)
        task.start { perform }
        @pool.guard.synchronize { @task = task }
        # `terminate` was called after a thread had taken the job, and before there was a task.
        task.stop if @stopped
        self
      rescue FiberError, NoMemoryError => e
        conclude(nil, e)
        self
      end

      # @api private
      # The fiber has ended, and so have all fibers that it had spun.
      def ended(task)
        return @pool.backlog.put_back(self) if lost? && !@begun

        conclude(task.value, task.error || (lost_error if lost?))
      end

      # @api private
      # Calls `wait.ended(job)` at the job's end, if the job has not ended.
      #
      # @param wait [JobWait]
      # @return [Boolean] whether the job has ended
      def notify(wait)
        @pool.guard.synchronize do
          @waits << wait unless ended?
          ended?
        end
      end

      # @api private
      # Takes back {#notify}.
      def forget(wait)
        @pool.guard.synchronize { @waits.delete(wait) }
      end

      # @api private
      # The thread that has taken the job is being killed, and has not begun it.
      def untaken
        @state = :pending
        @task = nil
      end

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
        Native.deliver(@task.scheduler, @task.fiber, error) if @task&.scheduler
      end

      # @return [Boolean] false if the error has been raised already
      def take_back(number)
        Native.retract(@task.scheduler, @task.fiber, number)
      end

      private

      def perform
        @begun = true
        Fiber[KEY] = self
        value = @work.call(*@arguments)
        # Raises what children sent to this fiber while it did not wait.
        Native.raise_deferred(@task.scheduler) if @task&.scheduler
        done = @returned = true
        value
      ensure
        stop_children(done)
      end

      # @param raises [Boolean] whether to raise a child's error; false if another error is being raised
      def stop_children(raises)
        # Most jobs have none.
        return if @children.empty?

        failed = Heddle.shield { JobWait.new(@pool, self, unfinished_children).stop }
        raise failed.error if failed && raises
      end

      def unfinished_children
        @pool.guard.synchronize { @children.keys }
      end

      def conclude(value, error)
        @pool.guard.synchronize do
          @value = value
          @error = error
          @state = :ended
          @pool.forget(self, keep: error && @waits.empty?)
          @pool.backlog.ended
          # With the guard: a wait that finds the job ended takes the error back, and raises it itself.
          propagate if error && @parent && @waits.none? { |wait| wait.claims?(self) }
          @waits.slice!(0..).each { |wait| wait.ended(self) }
        end
      end

      # Whether the job ends because its thread is being killed.
      def lost?
        !@returned && !@stopped && Thread.current.status == "aborting"
      end

      def lost_error
        ThreadError.new("#{inspect}: its thread was killed")
      end
    end
  end
end
