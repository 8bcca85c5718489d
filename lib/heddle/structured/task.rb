# frozen_string_literal: true

module Heddle
  # What is known of a fiber in the tree: whose child it is, which children it has, who awaits it, how it ended.
  #
  # A fiber gets one when it is spun, when it spins others, or when it is awaited. All but {#stop} happens on the
  # fiber's own thread.
  class Task
    VARIABLE = :@heddle_task
    private_constant :VARIABLE

    # @return [Fiber, nil] nil for a root that has not called yet
    attr_accessor :fiber
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

    class << self
      # @return [Task, nil] the fiber's, if it has one
      def of(fiber)
        fiber.instance_variable_get(VARIABLE)
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
        scheduler.instance_variable_get(VARIABLE) ||
          scheduler.instance_variable_set(VARIABLE, new(scheduler))
      end

      # The end of the root's children.
      #
      # @return [Exception, nil] the first error of theirs that nobody has taken
      def end_root(scheduler)
        root = scheduler.instance_variable_get(VARIABLE)
        return unless root

        root.follow_fork(scheduler)
        root.fiber = Fiber.current
        root.end_children
      end

      def next_rank
        @ranks = (@ranks || 0) + 1
      end

      private

      def adopt(fiber, scheduler)
        watch(fiber, scheduler) || (fiber.blocking? ? adopt_root(fiber, scheduler) : adopt_generator(scheduler))
      end

      def adopt_root(fiber, scheduler)
        root(scheduler).tap { |task| task.fiber ||= fiber }
      end

      # A fiber that another one has resumed: what it spins belongs to that one.
      def adopt_generator(scheduler)
        resumer = scheduler.__send__(:running)
        (resumer && of(resumer)) || (resumer && watch(resumer, scheduler)) || root(scheduler)
      end
    end

    # @param parent [Task, nil]
    # @param group [#ended, nil] who takes the errors in the parent's stead
    def initialize(scheduler, parent: nil, group: nil)
      @scheduler = scheduler
      @parent = parent
      @group = group
      # Kept in order by Hash, and quickly left.
      @children = {}
      @awaits = []
      @generation = Scheduler.generation
    end

    def belong_to(fiber)
      @fiber = fiber
      fiber.instance_variable_set(VARIABLE, self)
    end

    # Starts a fiber for the block. It runs when its turn comes.
    def start(*arguments, &block)
      @parent&.add(self)
      belong_to(@scheduler.__send__(:spawn, -> { carry { block.call(*arguments) } }))
      @fiber
    rescue Exception # rubocop:disable Lint/RescueException -- raised again
      @parent&.remove(self) unless @fiber
      raise
    end

    # Runs the block in the fiber that is running, and then sees to the children. How it ended is to be asked for.
    #
    # @raise what concerns the whole thread
    def carry
      value = error = nil
      begin
        @scheduler.__send__(:check)
        value = yield
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

    # It has failed.
    def failed(error)
      finish(nil, error)
    end

    # It has been killed, and must not wait.
    def killed
      abandon
    end

    # It has been killed before it began.
    def vanished
      conclude(nil, nil) unless ended?
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

    def add(child)
      @children[child] = true
    end

    def remove(child)
      @children.delete(child)
      @scheduler.unblock(self, @fiber) if @ending && @children.empty?
    end

    # An error that a child has not handled: it is raised wherever this fiber waits.
    def receive(error, child)
      if @ending
        @late ||= error
      elsif ended? || !@fiber || !(number = @scheduler.__send__(:deliver, @fiber, error))
        @late ||= error
      else
        child.sent = number
      end
    end

    # Ends the children, running their `ensure`, and waits for that. Nobody can break into it, but the thread's own
    # interrupts.
    #
    # @return [Exception, nil] the first error of those that ended meanwhile
    def end_children
      return take_late if @children.empty?

      @ending = true
      @scheduler.__send__(:hold_back) do
        @children.keys.each(&:stop)
        wait_for_children
      end
      take_late
    ensure
      @ending = false
    end

    # Has `await.ended(task)` called at the end.
    #
    # @return [Boolean] whether it has come already
    def await(await)
      # In this order, since another fiber may have a turn in between.
      @awaits << await
      ended?
    end

    def forget(await)
      @awaits.delete(await)
    end

    # An error that is on its way to the parent will be raised there by other means.
    def retract
      @scheduler.__send__(:retract, @parent.fiber, @sent) if @sent && @parent
      @sent = nil
    end

    # Who awaited this fiber when it failed does not do so any longer, and the error has been raised nowhere.
    def hand_up
      @parent&.receive(@error, self)
    end

    # After a fork the other fibers are in the parent process alone.
    def follow_fork(scheduler)
      return if @generation == Scheduler.generation

      @generation = Scheduler.generation
      @scheduler = scheduler
      @parent = nil
      @children.clear
      @awaits.clear
    end

    protected

    attr_writer :sent

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
      @children.keys.each(&:stop)
      conclude(nil, nil)
    end

    def conclude(value, error)
      @value = error ? nil : value
      @error = error
      @rank = Task.next_rank
      @ended = true
      claims = @awaits.map { |await| await.ended(self) }
      @awaits.clear
      @group&.ended(self)
      @parent&.remove(self)
      hand_up if error && !@group && claims.none?
    end

    def wait_for_children
      @scheduler.block(self, nil) until @children.empty?
    rescue SignalException
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException -- raised when the children have ended
      @late ||= e
      retry
    end

    def take_late
      @late.tap { @late = nil }
    end
  end
  private_constant :Task
end
