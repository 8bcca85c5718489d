# frozen_string_literal: true

module Heddle
  # The block of {Heddle.run} in a fiber of a scheduler that runs already. The block runs in that fiber. At its end the
  # fibers that were started in it end as at the end of an outermost {Heddle.run}: those of {Heddle.spin} are
  # stopped, those of `Fiber.schedule` are awaited.
  class Scope
    # @param scheduler [Scheduler]
    # @param task [Task] the current fiber's
    # @param members [Boolean] whether the fibers of `Fiber.schedule` belong to the scope
    def initialize(scheduler, task, members: true)
      @scheduler = scheduler
      @task = task
      @has_members = members
    end

    # Runs the block. Only the block may be preempted; see {Task#carry}.
    #
    # @return [Object] the block's value
    # @raise the block's error, or the first error of a child
    def run
      Heddle.without_preemption do
        open
        value = Native.run_user_block(@scheduler) { yield } # rubocop:disable Style/ExplicitBlockArgument -- keeps its self
        # Raises what children sent to this fiber while it did not wait.
        Native.raise_deferred(@scheduler)
        value
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised again
        error = e
        raise
      ensure
        late = close
        raise late if late && !error
      end
    end

    private

    def open
      @children = @task.begin_scope
      @number = Native.open_scope(@scheduler) if @has_members
    end

    # Runs also if the block is left by `break` or `throw`, or if the fiber is being killed.
    #
    # @return [Exception, nil] the first error of a child that failed in the meantime
    def close
      @task.reset_after_fork(@scheduler)
      # If the fiber is being killed, it cannot wait for its children below.
      stop_members if Native.unwinding?(@scheduler)
      late = @task.end_children
      await_members
      late
    ensure
      @task.end_scope(@children)
      Native.close_scope(@scheduler, @number) if @number
    end

    # Waits for the fibers of `Fiber.schedule`. If this fiber is stopped meanwhile, or a time limit elapses, so are
    # they.
    def await_members
      wait_for_members
    rescue SignalException
      raise
    rescue Exception # rubocop:disable Lint/RescueException -- raised again when the members have ended
      Native.defer_raises(@scheduler) do
        stop_members
        wait_for_members
      end
      raise
    end

    def members
      @number ? Native.scope_members(@scheduler, @number) : []
    end

    def stop_members
      members.each { |fiber| Native.stop(@scheduler, fiber) }
    end

    def wait_for_members
      until (fibers = members).empty?
        tasks = fibers.filter_map { |fiber| Task.of(fiber) || Task.observe(fiber, @scheduler) }
        TaskWait.new(@scheduler, @task, tasks).until(&:all?)
      end
    end
  end
  private_constant :Scope
end
