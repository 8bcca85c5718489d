# frozen_string_literal: true

module Heddle # :nodoc:
  # @!method self.without_preemption
  #   Runs a critical section: the fiber is not preempted in the block. Nestable, and cheap. The block may wait; then
  #   others go on, as always.
  #
  #   @yield what must not be interrupted by other fibers of this thread
  #   @return [Object] the block's value
  #   @raise [ArgumentError] without a block
  #   @example
  #     Heddle.without_preemption { @count += 1 }

  # A Fiber that gives up its turn when it computes for too long.
  #
  # On a thread that has a {Scheduler} it is preempted when somebody else is due; so is what it calls, the Enumerators
  # and fibers that it resumes included. Timeouts, `Fiber#raise` and `Fiber#kill` reach it while it computes.
  #
  # On other threads it yields after 10 ms by the means that there are: with `push` and `transfer` under a scheduler
  # that has them (Async, io-event), with `yield` or `kernel_sleep` under another, and with `Fiber.yield` if there is
  # none.
  #
  # @example On Heddle
  #   Heddle.run do
  #     YieldingFiber.schedule { fib(40) }
  #     sleep 1 # takes one second
  #   end
  # @example In a loop of one's own
  #   fibers = Array.new(2) { YieldingFiber.new { fib(30) } }
  #   fibers.each(&:resume) while fibers.select!(&:alive?) || fibers.any?
  class YieldingFiber < Fiber
    INITIALIZE = Fiber.instance_method(:initialize)
    private_constant :INITIALIZE

    class << self
      # Runs a block in a new yielding fiber, as `Fiber.schedule` does: at once, until it first waits or is preempted.
      #
      # @param arguments [Array] what the block is given
      # @param storage [Hash, true, nil] as Fiber.new takes it
      # @yield what is to be run
      # @return [YieldingFiber] the new fiber; under somebody else's scheduler the one that it makes
      # @raise [ArgumentError] without a block, or if the scheduler's `signal:` is used by somebody else by now
      # @raise [RuntimeError] if this thread has no scheduler
      # @raise [SystemCallError] if timers, threads or descriptors have run out
      # @example
      #   YieldingFiber.schedule { cpu_work }
      def schedule(*arguments, storage: true, &block)
        raise ArgumentError, "tried to create a fiber without a block" unless block

        case (scheduler = Fiber.scheduler)
        when nil then raise "No scheduler is available!"
        when Scheduler then start(scheduler, arguments, storage, block)
        else Fiber.schedule { Presence.during { block.call(*arguments) } }
        end
      end

      private

      def start(scheduler, arguments, storage, block)
        fiber = allocate
        INITIALIZE.bind_call(fiber, storage:) do |started_by, given|
          Scheduler.__send__(:run_scheduled, started_by, given)
        end
        scheduler.__send__(:start_yielding, fiber, arguments, block)
      end
    end

    # @param options [Hash] as Fiber.new takes them
    # @yield [*arguments] what is to be run, with the arguments of the first `resume`
    # @raise [ArgumentError] without a block
    def initialize(**options, &block)
      # A fiber's own `raise` is another method.
      ::Kernel.raise ArgumentError, "tried to create a fiber without a block" unless block

      super { |*arguments| Presence.during { block.call(*arguments) } }
    end

    # Resumes the fiber; see Ruby's documentation. It may yield without having been told to.
    def resume(...)
      Scheduler.__send__(:resuming, self) { super }
    end

    # Switches to the fiber; see Ruby's documentation.
    def transfer(...)
      Scheduler.__send__(:transferring)
      super
    end
  end

  # A yielding fiber that has begun and not ended.
  class Presence
    # @return [Object] the block's value; nil if the fiber was killed
    def self.during
      presence = self.begin
      yield
    rescue Stop
      nil
    ensure
      presence&.finish
    end
  end
  private_constant :Presence

  # Sees to it that a forked child which goes on computing is preempted.
  module ForkWatch
    # Called by Ruby for each fork; see Process._fork.
    def _fork
      super.tap { |pid| Scheduler.__send__(:forked) if pid.zero? }
    end
  end
  private_constant :ForkWatch

  Process.singleton_class.prepend(ForkWatch)
  at_exit { Presence.stop }
end

YieldingFiber = Heddle::YieldingFiber unless defined?(YieldingFiber)
