# frozen_string_literal: true

module Heddle # :nodoc:
  # @!method self.without_preemption
  #   Runs a critical section: the fiber is not preempted in the block. Calls may be nested, and cost little. If the
  #   block waits, other fibers run, as always.
  #
  #   @yield what other fibers of this thread must not interrupt
  #   @return [Object] the block's value
  #   @raise [ArgumentError] without a block
  #   @example
  #     Heddle.without_preemption { @count += 1 }

  # A Fiber that is preempted when it computes for too long.
  #
  # On a thread with a {Scheduler}, it is preempted when another fiber is due. So is everything that it calls, including
  # the Enumerators and fibers that it resumes. Timeouts, `Fiber#raise` and `Fiber#kill` reach it while it computes.
  #
  # On other threads it yields after 10 ms, by the means available there: `push` and `transfer` under a scheduler that
  # has them (Async, io-event), `yield` or `kernel_sleep` under another one, and `Fiber.yield` without a scheduler.
  #
  # The idea of a timer that makes fibers yield is that of the article 'Pre-emptive fiber-based concurrency in MRI
  # Ruby'.
  #
  # @example On Heddle
  #   Heddle.run do
  #     YieldingFiber.schedule { fib(40) }
  #     sleep 1 # takes one second
  #   end
  # @example In a loop of your own
  #   fibers = Array.new(2) { YieldingFiber.new { fib(30) } }
  #   fibers.each(&:resume) while fibers.select!(&:alive?) || fibers.any?
  class YieldingFiber < Fiber
    INITIALIZE = Fiber.instance_method(:initialize)
    private_constant :INITIALIZE

    class << self
      # Runs a block in a new yielding fiber, as `Fiber.schedule` does: at once, until it first waits or is preempted.
      #
      # @param arguments [Array] passed to the block
      # @param storage [Hash, true, nil] as `Fiber.new` takes it
      # @yield [*arguments] what the fiber runs
      # @return [YieldingFiber] the new fiber; under another library's scheduler, the fiber that the scheduler makes
      # @raise [ArgumentError] without a block, or if other code has taken the scheduler's `signal:` in the meantime
      # @raise [RuntimeError] if this thread has no scheduler
      # @raise [SystemCallError] if the system has no timers, threads or descriptors left
      # @example
      #   YieldingFiber.schedule { cpu_work }
      def schedule(*arguments, storage: true, &block)
        raise ArgumentError, "tried to create a fiber without a block" unless block

        case (scheduler = Fiber.scheduler)
        when nil then raise "No scheduler is available!"
        when Scheduler
          start(scheduler, arguments, storage, storage == true ? WorkContext.carry_libraries(block) : block)
        else start_elsewhere(arguments, storage, block)
        end
      end

      private

      def start(scheduler, arguments, storage, block)
        fiber = allocate
        INITIALIZE.bind_call(fiber, storage:, &FiberBody::CODE)
        Native.start_yielding(scheduler, fiber, arguments, block)
      end

      # The hook of another library's scheduler need not know `storage:`.
      def start_elsewhere(arguments, storage, block)
        # Raises for what is no storage.
        INITIALIZE.bind_call(allocate, storage:) { nil }
        context = WorkContext.new(storage || {}, nil, []) unless storage == true
        Fiber.schedule do
          context&.replace_storage
          YieldState.during { block.call(*arguments) }
        end
      end
    end

    # Makes a fiber that {#resume} starts. A scheduler does not run it; {YieldingFiber.schedule} makes fibers that it
    # runs.
    #
    # @param options [Hash] as `Fiber.new` takes them
    # @yield [*arguments] what the fiber runs, with the arguments of the first `resume`
    # @raise [ArgumentError] without a block
    # @example
    #   fiber = YieldingFiber.new { fib(30) }
    #   fiber.resume while fiber.alive?
    def initialize(**options, &block)
      # `raise` alone would be Fiber#raise.
      ::Kernel.raise ArgumentError, "tried to create a fiber without a block" unless block

      super { |*arguments, **keywords| YieldState.during { block.call(*arguments, **keywords) } }
    end

    # Resumes the fiber; see Ruby's documentation. The fiber may yield although its block does not call `Fiber.yield`.
    #
    # @return [Object] what the fiber yields, or its value; nil if it was preempted
    def resume(...)
      Native.resuming(self) { super }
    end

    # Switches to the fiber; see Ruby's documentation.
    def transfer(...)
      Native.transferring
      super
    end
  end

  # A yielding fiber that no Heddle scheduler runs: the program resumes it, or another library's scheduler runs it. It
  # lasts from the fiber's start to its end. The extension defines the rest of the class.
  class YieldState
    # @return [Object] the block's value; nil if the fiber was killed
    def self.during
      state = self.begin
      yield
    rescue Stop
      nil
    ensure
      state&.finish
    end
  end
  private_constant :YieldState
end

# {Heddle::YieldingFiber}, unless the program has a class of this name before it loads Heddle.
YieldingFiber = Heddle::YieldingFiber unless defined?(YieldingFiber)
