# frozen_string_literal: true

module Heddle
  # A fiber of {Heddle.spin}: a child of the fiber that has started it. `Fiber.current` in it is the task.
  #
  # @example
  #   Heddle.run do
  #     page = Heddle.spin(name: "page") { fetch("/") }
  #     page.await # => what the block has returned
  #   end
  class Task < Fiber
    INITIALIZE = Fiber.instance_method(:initialize)
    private_constant :INITIALIZE
    private_class_method :new

    # @api private
    # @param scheduler [Scheduler]
    # @return [Task] a fiber that the scheduler can start
    def self.make(scheduler)
      task = allocate
      INITIALIZE.bind_call(task, &FiberBody.for(scheduler))
      task
    end

    # Waits for the task's end.
    #
    # @return [Object] the block's value; nil if the task was stopped
    # @raise the error that ends it
    # @raise (see Heddle.await)
    # @example
    #   Heddle.run { Heddle.spin { :weft }.await } # => :weft
    def await = Heddle.await(self)

    # Stops the task, and does not wait for its end; see {Heddle.stop}.
    #
    # @return [self]
    # @example
    #   clock = Heddle.spin(background: true) { Heddle.every(1) { puts Time.now } }
    #   clock.stop
    def stop = Heddle.stop(self)

    # @return [:running, :runnable, :waiting, :dead] see {Heddle.state}
    def state = Heddle.state(self)

    # @return [String, nil] the name that {Heddle.spin} or {Heddle.annotate} has given it
    def name = Names.of(self)

    # @return [Fiber, nil] the fiber that has started it: a task, a fiber of `Fiber.schedule`, or a thread's root
    def parent = TreeNode.of(self)&.parent&.fiber

    # @return [Array<Task>] the fibers that it has started, and that have not ended
    def children = TreeNode.of(self)&.child_fibers || []
  end
end
