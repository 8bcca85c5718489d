# frozen_string_literal: true

module Heddle # :nodoc:
  class << self
    # Makes a fiber and puts it into the run queue. The caller continues. (`Fiber.schedule` runs its block at once.)
    #
    # The new fiber is a child of the calling fiber. When the parent ends, it stops its children and waits for
    # them. An error that the child does not rescue is raised in its parent, wherever the parent waits.
    #
    # On a thread without a scheduler, the first call sets one, which Ruby closes at the thread's end. Besides {run}, no
    # other method of Heddle sets a scheduler.
    #
    # The name is Polyphony's. The tree of fibers is structured concurrency, as in Trio's nurseries.
    #
    # @param arguments [Array] passed to the block
    # @param name [#to_s, nil] the new fiber's name; see {annotate}
    # @yield [*arguments] what the fiber runs
    # @return [Fiber] the new fiber
    # @raise [ArgumentError] without a block
    # @raise [RuntimeError] if the thread has another library's scheduler
    # @raise [FiberError, NoMemoryError] if there is no memory for another fiber
    # @example
    #   Heddle.run do
    #     fibers = [1, 2].map { |n| Heddle.spin { sleep n; n } }
    #     Heddle.await_all(*fibers)
    #   end # => [1, 2], after two seconds
    def spin(*, name: nil, **, &block)
      ArgumentChecks.block(block, "Heddle.spin")
      scheduler = Context.scheduler_or_new("Heddle.spin")
      Task.new(scheduler, parent: Task.current(scheduler), name:).start(*, **, &block)
    end

    # Lets the other runnable fibers run before this one continues. The name is Polyphony's.
    #
    # @return [nil]
    # @raise [RuntimeError] if the thread has no Heddle::Scheduler
    # @example
    #   Heddle.snooze until finished?
    def snooze
      Context.scheduler("Heddle.snooze").yield
      nil
    end
  end
end
