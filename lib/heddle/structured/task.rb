# frozen_string_literal: true

require_relative "task/family"
require_relative "task/lookup"

module Heddle
  # What is known of a fiber in the tree: whose child it is, which children it has, who awaits it, how it ended.
  #
  # A fiber gets one when it is spun, when it spins others, or when it is awaited. All but {#stop} happens on the
  # fiber's own thread.
  class Task
    extend Lookup
    include Family

    # @return [Fiber, nil] nil for a root that has not called yet
    attr_accessor :fiber
    # @return [Proc, nil] what the fiber was made for
    attr_accessor :block
    # @return [Scheduler]
    attr_reader :scheduler
    # @return [Task, nil]
    attr_reader :parent
    # @return [Object, nil] what its block returned
    attr_reader :value
    # @return [Exception, nil] what ended it
    attr_reader :error
    # @return [Integer, nil] the how manieth of all it was to end
    attr_reader :rank

    # @param parent [Task, nil]
    # @param group [#ended, nil] who takes the errors in the parent's stead
    def initialize(scheduler, parent: nil, group: nil)
      @scheduler = scheduler
      @parent = parent
      @group = group
      # Kept in order by Hash, and quickly left.
      @children = {}
      @awaits = []
      @generation = Scheduler.__send__(:generation)
    end

    def belong_to(fiber)
      @fiber = fiber
      Task.assign(fiber, self)
    end

    # Starts a fiber for the block. It runs when its turn comes.
    def start(*arguments, &block)
      @block = block
      Heddle.without_preemption do
        @parent&.add(self)
        belong_to(@scheduler.__send__(:spawn, -> { carry { block.call(*arguments) } }, self))
      ensure
        @parent&.remove(self) unless @fiber
      end
      @fiber
    end

    # Runs the block in the fiber that is running, and then sees to the children. How it ended is to be asked for.
    #
    # Only the block may be preempted: what strikes a fiber that computes, to end it for instance, would else keep it
    # from telling those that wait for its end.
    #
    # @raise what concerns the whole thread
    def carry
      value = error = nil
      begin
        @scheduler.__send__(:check)
        value = @scheduler.__send__(:expose) { yield } # rubocop:disable Style/ExplicitBlockArgument -- keeps its self
        # What children sent while nothing was waited for must not get lost.
        @scheduler.__send__(:check)
      rescue Stop, SignalException => e
        # The first was told to end, and has. The other is no affair of this fiber's alone.
        interrupt = e if e.is_a?(SignalException)
      rescue Exception => e # rubocop:disable Lint/RescueException -- handed on
        error = e
      end
    ensure
      # Also if the fiber is being killed.
      interrupt ? abandon : finish(value, error)
      raise interrupt if interrupt
    end

    # The end of a fiber that runs no block of ours: it has returned.
    def returned(value)
      finish(value, nil)
      raise @error if @error
    end

    # It has failed. Or it couldn't begin.
    def failed(error)
      finish(nil, error)
    end

    # It has been killed: it must not wait. Or it has never begun.
    def killed
      abandon unless ended?
    end

    # Tells the fiber to end, and does not wait for it. Any thread may.
    #
    # @return [Boolean] false if it can't be told
    def stop
      @scheduler.__send__(:stop, @fiber)
    end

    def ended?
      @ended || false
    end

    # Has `await.ended(task)` called at the end, if that is still to come.
    def await(await)
      # In this order, since another fiber may have a turn in between.
      @awaits << await
      await.ended(self) if ended?
    end

    def forget(await)
      @awaits.delete(await)
    end

    # After a fork the other fibers are in the parent process alone.
    def follow_fork(scheduler)
      return if @generation == Scheduler.__send__(:generation)

      @generation = Scheduler.__send__(:generation)
      @scheduler = scheduler
      @parent = nil
      @children.clear
      @awaits.clear
    end

    private

    def finish(value, error)
      follow_fork(@scheduler)
      late = end_children
      conclude(value, error || late)
    ensure
      # The thread is interrupted, or the fiber has been killed, while its children had not all ended.
      abandon unless ended?
    end

    # Ends without waiting for the children.
    def abandon
      stop_children
      conclude(nil, nil)
    end

    def conclude(value, error)
      @value = value unless error
      @error = error
      @rank = Task.next_rank
      @ended = true
      claims = @awaits.map { |await| await.ended(self) }
      @awaits.clear
      @parent&.remove(self)
      return @group.ended(self) if @group

      hand_up if @error && claims.none?
    end
  end
  private_constant :Task
end
