# frozen_string_literal: true

module Heddle # :nodoc:
  class << self
    # Makes a fiber and puts it into the run queue. The caller continues. (`Fiber.schedule` runs its block at once.)
    #
    # The new fiber is a child of the calling fiber, whose block waits for it at its end: see {run} for the rules. A
    # child in the background is stopped when the block and its other children have ended.
    #
    # The error of a child is raised where it is awaited. If no fiber awaits the child, its siblings are stopped, and
    # the error is raised in the parent's next wait, at the end of its block at the latest.
    #
    # The name is Polyphony's. The tree of fibers is structured concurrency, as in Trio's nurseries.
    #
    # @param arguments [Array] passed to the block
    # @param name [#to_s, nil] the new fiber's name; see {annotate}
    # @param background [Boolean] whether the parent does not wait for it
    # @yield [*arguments] what the fiber runs
    # @return [Task] the new fiber
    # @raise [ArgumentError] without a block
    # @raise [RuntimeError] if the thread has no Heddle::Scheduler
    # @raise [FiberError, NoMemoryError] if there is no memory for another fiber
    # @example
    #   Heddle.run do
    #     Heddle.spin(background: true) { Heddle.every(30) { refresh(cache) } }
    #     urls.each { |url| Heddle.spin(url, name: url) { |address| puts fetch(address) } }
    #   end # ends when all pages are printed
    def spin(*, name: nil, background: false, &block)
      ArgumentChecks.block(block, "Heddle.spin")
      scheduler = Context.scheduler("Heddle.spin")
      TreeNode.new(scheduler, parent: TreeNode.current(scheduler), name:, background:).start(*, &block)
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
