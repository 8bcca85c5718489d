# frozen_string_literal: true

module Heddle
  # One fiber's wait for the end of several fibers.
  class TaskWait
    # @return [TreeNode, nil] the fiber that ended first
    attr_reader :first
    # @return [TreeNode, nil] the first fiber that failed
    attr_reader :failed

    # @param scheduler [Scheduler]
    # @param owner [TreeNode] the waiting fiber's
    # @param nodes [Array<TreeNode>]
    def initialize(scheduler, owner, nodes)
      @scheduler = scheduler
      @pending = nodes.to_h { |node| [node, true] }
      @fiber = Fiber.current
      @owner = owner
      @claimed = []
    end

    # @return [Array<Fiber>] the fibers that have not ended
    def fibers = @pending.keys.map(&:fiber)

    # Waits until the condition holds.
    #
    # @yieldparam wait [TaskWait] this
    # @yieldreturn [Boolean] the condition
    def until(&condition)
      @condition = condition
      # Fibers may end, and leave the Hash, meanwhile. That is allowed while it is iterated over.
      @pending.each_key { |node| node.await(self) }
      record_ended(@pending.keys.select(&:ended?))
      @scheduler.block(self, nil) until condition.call(self)
      @settled = true
    ensure
      release
    end

    # @return [Boolean] whether all fibers have ended
    def all?
      @pending.empty?
    end

    # A fiber has ended.
    #
    # @return [Boolean] whether this wait raises its error, so that its parent does not get it
    def ended(node) # rubocop:disable Naming/PredicateMethod -- it is an action
      # It is about to be raised in the root, and so ends this wait.
      return false if node.interrupted? && !node.relayed? && @fiber.blocking?
      return false unless record(node)

      @owner.relay(node)
      @claimed << node if node.error
      @scheduler.unblock(self, @fiber) if @condition.call(self)
      true
    end

    # Sends the claimed errors to the parents after all, except that of `node`, which the caller raises.
    #
    # @param node [TreeNode, nil]
    def unclaim_all_but(node)
      @claimed.each { |other| other.unclaim unless other.equal?(node) }
    end

    # Stops the remaining fibers that are the owner's children, and waits for their end.
    def stop_rest
      own = @pending.keys.select { |node| node.parent.equal?(@owner) }
      return if own.empty?

      Native.defer_raises(@scheduler) do
        own.each(&:stop)
        TaskWait.new(@scheduler, @owner, own).until(&:all?)
      end
    end

    private

    # Records fibers that had ended before {TreeNode#await} was called: this fiber may have been preempted until then.
    def record_ended(ended)
      ended.sort_by(&:end_number).each { |node| record(node) }
      # This wait raises the errors that are on their way to the parents. They must not be raised twice.
      @claimed.concat(ended.select { |node| node.error && node.claim })
    end

    # If the wait was broken off, sends the claimed errors to the parents after all.
    def release
      @pending.each_key { |node| node.forget(self) }
      unclaim_all_but(nil) unless @settled
    end

    def record(node)
      return unless @pending.delete(node)

      @first ||= node
      @failed ||= node if node.error
      true
    end
  end
  private_constant :TaskWait
end
