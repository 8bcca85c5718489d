# frozen_string_literal: true

module Heddle
  # The block of {Heddle.run} in a fiber of a scheduler that runs already. The block runs in that fiber. At its end the
  # fibers that were started in it end as at the end of an outermost {Heddle.run}: all are awaited, and then those in
  # the background are stopped.
  class Scope
    # @param scheduler [Scheduler]
    # @param node [TreeNode] the current fiber's
    # @param kind [:with_members, :of_spun] whether the fibers of `Fiber.schedule` belong to the scope. Not by keyword:
    #   on Ruby 3.3 that makes two Hashes, and each request has a scope
    def initialize(scheduler, node, kind = :with_members)
      @scheduler = scheduler
      @node = node
      @has_members = kind == :with_members
    end

    # Runs the block. Only the block may be preempted; see {TreeNode#carry}.
    #
    # @return [Object] the block's value
    # @raise the block's error, or the first error of a child
    def run
      Heddle.without_preemption do
        open
        value = Native.run_user_block(@scheduler, false) { yield } # rubocop:disable Style/ExplicitBlockArgument -- keeps its self
        await_all
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
      @children = @node.enter_block
      @number = Native.open_scope(@scheduler) if @has_members
    end

    def await_all
      @node.reset_after_fork(@scheduler)
      @children.await
      return unless @number

      await_members
      # One in the background may have failed meanwhile.
      @children.await
    end

    # Runs also if the block is left by `break` or `throw`, or if the fiber is being killed.
    #
    # @return [Exception, nil] the first error of a child that failed in the meantime
    def close
      @node.reset_after_fork(@scheduler)
      # If the fiber is being killed, it cannot wait for its children below.
      stop_members if @number && Native.unwinding?(@scheduler)
      late = @children&.finish
      await_members if @number
      late
    ensure
      @node.leave_block(@children) if @children
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

    def members = Native.scope_members(@scheduler, @number)

    def stop_members
      members.each { |fiber| TreeNode.observed(fiber, @scheduler)&.stop }
    end

    def wait_for_members
      until (fibers = members).empty?
        nodes = fibers.filter_map { |fiber| TreeNode.observed(fiber, @scheduler) }
        TaskWait.new(@scheduler, @node, nodes).until(&:all?)
      end
    end
  end
  private_constant :Scope
end
