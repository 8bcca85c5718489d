# frozen_string_literal: true

# A Fiber::Scheduler over io_uring (or epoll), written in Rust.
module Heddle
  # Runs a block, and all fibers that are started in it, on this thread.
  #
  # The block runs in a non-blocking fiber, which is the root of the tree of fibers that {spin} makes. At its end the
  # block, like that of each fiber of {spin}, waits for its children, and then stops those in the background. If it
  # raises, is stopped, or is left by a time limit, it stops all of them, and ends when they have ended.
  # {run} also awaits the fibers of `Fiber.schedule`.
  #
  # On a thread without a scheduler this sets a new one, and closes it at the end. SIGINT and SIGTERM end every fiber,
  # running its `ensure`. A second signal does not wait for that. The process then dies by the signal, so that a shell
  # sees the status 130 or 143.
  #
  # On a thread whose {Scheduler} runs already, the block runs in the calling fiber. It is a scope: only the fibers that
  # are started in it, by whichever of its fibers, delay its end. So a library may call this whatever its caller does.
  # If the calling fiber is stopped meanwhile, or a time limit elapses, all these fibers are stopped. In a
  # thread's root fiber, and in a generator such as an Enumerator's, the block runs in a child of its own. So `break`
  # does not leave it there.
  #
  # @param options [Hash] for the new scheduler; see {Scheduler#initialize}
  # @yield the program
  # @return [Object] the block's value
  # @raise [ArgumentError] without a block, for an invalid option, or for options where a scheduler runs already
  # @raise [RuntimeError] if this thread has another library's scheduler
  # @raise the block's error, or that of a child which no fiber awaits, when the other fibers have ended
  # @example Wait three times at once
  #   Heddle.run do
  #     3.times { Fiber.schedule { sleep 1 } }
  #   end # takes one second
  # @example In a library, with or without a scheduler around it
  #   def pages(urls)
  #     Heddle.run { Heddle.await_all(*urls.map { |url| Heddle.spin { fetch(url) } }) }
  #   end
  def self.run(**options, &block)
    ArgumentChecks.block(block, "Heddle.run")
    case (current = Fiber.scheduler)
    when nil then Root.run(Scheduler.new(**options), block) { yield } # rubocop:disable Style/ExplicitBlockArgument -- must yield in the caller's frame
    when Scheduler
      expect_no_options(options)
      run_within(current) { yield } # rubocop:disable Style/ExplicitBlockArgument -- the same
    else raise Context.foreign_scheduler(current, "Heddle.run")
    end
  end

  class << self
    private

    def run_within(scheduler)
      return Scope.new(scheduler, TreeNode.current(scheduler)).run { yield } if Context.own_task?(scheduler) # rubocop:disable Style/ExplicitBlockArgument -- must yield in the caller's frame

      Context.in_child { Scope.new(scheduler, TreeNode.current(scheduler)).run { yield } } # rubocop:disable Style/ExplicitBlockArgument -- the same
    end

    def expect_no_options(options)
      return if options.values.none?

      raise ArgumentError, "Heddle.run: a scheduler runs on this thread already, and keeps its options, so " \
                           "#{options.compact.keys.map { |key| "#{key}:" }.join(", ")} cannot be set: leave " \
                           "the options out, or call Heddle.run in another thread"
    end
  end

  # What {Heddle.run} tells its scheduler. Adapters whose work is not a fiber's child take part in the block's end.
  class Scheduler
    # @api private
    def runs_block
      @runs_block = true
    end

    # @api private
    # @return [Boolean] whether a block of {Heddle.run} is the program
    def runs_block? = @runs_block || false

    # @api private
    # @param error [Exception, nil] the block's
    # @return [Exception, nil] what {Heddle.run} raises
    def block_ended(error) = error
  end

  # The outermost call of {Heddle.run} on a thread.
  module Root
    # @param scheduler [Scheduler] a new one, which is closed at the end
    # @param block [Proc] what the caller was given, for reports
    # @yield the program
    # @return [Object] the block's value
    def self.run(scheduler, block)
      value = error = nil
      work = WorkContext.carry(-> { yield }) # rubocop:disable Style/ExplicitBlockArgument -- must yield in the caller's frame
      begin
        scheduler.runs_block
        Fiber.set_scheduler(scheduler)
        # With the storage given, the fiber takes no context along: the work does.
        Fiber.schedule(storage: true) do
          task = TreeNode.new(scheduler)
          task.assign_to(Fiber.current)
          task.block = block
          Heddle.without_preemption do
            task.carry { work.call }
          end
          value = task.value
          # Raised again below, `exit` included.
          error = scheduler.block_ended(task.error)
        end
      ensure
        Fiber.set_scheduler(nil)
      end
      raise error if error

      value
    end
  end
  private_constant :Root
end
