# frozen_string_literal: true

module Heddle
  # The block of {Heddle.run} in a fiber of a scheduler that runs already. The block runs in that fiber. At its end the
  # fibers that were started in it end as at the end of an outermost {Heddle.run}: those of {Heddle.spin} are told to
  # end, those of `Fiber.schedule` are awaited.
  class Scope
    # @param scheduler [Scheduler]
    # @param task [Task] the current fiber's
    def initialize(scheduler, task)
      @scheduler = scheduler
      @task = task
    end

    # Runs the block. Only the block may be preempted; see {Task#carry}.
    #
    # @return [Object] the block's value
    # @raise the block's error, or the first error of a child
    def run
      Heddle.without_preemption do
        open
        value = @scheduler.__send__(:run_user_block) { yield } # rubocop:disable Style/ExplicitBlockArgument -- keeps its self
        # Raises what children sent to this fiber while it did not wait.
        @scheduler.__send__(:raise_deferred)
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
      @number = @scheduler.__send__(:open_scope)
    end

    # Runs also if the block is left by `break` or `throw`, or if the fiber is being killed.
    #
    # @return [Exception, nil] the first error of a child that failed in the meantime
    def close
      @task.reset_after_fork(@scheduler)
      # If the fiber is being killed, it cannot wait for its children below.
      stop_members if @scheduler.__send__(:unwinding?)
      late = @task.end_children
      await_members
      late
    ensure
      @task.end_scope(@children)
      @scheduler.__send__(:close_scope, @number) if @number
    end

    # Waits for the fibers of `Fiber.schedule`. If this fiber is told to end meanwhile, or a time limit elapses, so are
    # they.
    def await_members
      wait_for_members
    rescue SignalException
      raise
    rescue Exception # rubocop:disable Lint/RescueException -- raised again when the members have ended
      @scheduler.__send__(:defer_raises) do
        stop_members
        wait_for_members
      end
      raise
    end

    def members
      @number ? @scheduler.__send__(:scope_members, @number) : []
    end

    def stop_members
      members.each { |fiber| @scheduler.__send__(:stop, fiber) }
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
