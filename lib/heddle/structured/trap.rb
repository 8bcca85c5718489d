# frozen_string_literal: true

module Heddle # :nodoc:
  class << self
    # Handles signals in the tree of fibers. The block runs in a child of the calling fiber, and may do all that a fiber
    # may do. Ruby's own `trap` runs its block in whichever fiber the main thread is running, and forbids a Mutex there.
    #
    # Without a block, the signals end the tree: each fiber is stopped, its `ensure` runs, and then the process dies
    # by the signal, so that a shell sees the status 128 + number. A second signal does not wait for that. SIGINT and
    # SIGTERM end the tree without this method, too.
    #
    # When the calling fiber ends, the previous handlers are restored. The name is Polyphony's.
    #
    # @param signals [Array<String, Symbol, Integer>] as Ruby's `trap` takes them
    # @yieldparam number [Integer] the signal's number
    # @return [Task] the fiber that waits for the signals, in the background; {Task#stop} ends it, and restores the
    #   handlers
    # @raise [ArgumentError] without signals, or for a signal that is unknown or that Ruby reserves
    # @raise [Errno::EINVAL] for a signal that the system does not allow to be handled
    # @raise [RuntimeError] if the thread has no Heddle::Scheduler
    # @example
    #   Heddle.run do
    #     Heddle.trap("HUP") { reload }
    #     Heddle.trap("QUIT")
    #     serve
    #   end
    def trap(*signals, &block)
      raise ArgumentError, "Heddle.trap needs at least one signal" if signals.empty?

      Context.scheduler("Heddle.trap")
      arrived = Thread::Queue.new
      traps = []
      signals.each do |signal|
        traps << Trap.new(signal, signal_handler(arrived, block))
        traps.last.set
      end
      handling = handle_signals(arrived, traps, block)
    ensure
      traps&.each(&:restore) unless handling
    end

    private

    # Heddle sends an exception that a handler raises to the root at once, even while a fiber computes.
    def signal_handler(arrived, block)
      block ? ->(number) { arrived << number } : ->(number) { raise SignalException, number }
    end

    def handle_signals(arrived, traps, block)
      begun = false
      fiber = spin(background: true) do
        begun = true
        while (number = arrived.pop)
          handle_signal(block, number)
        end
      ensure
        traps.each(&:restore)
      end
      # The `ensure` of a fiber that is stopped before it has begun does not run. So it must begin first.
      snooze until begun
      handling = fiber
    ensure
      # The calling fiber was interrupted, and does not learn of the new one.
      Native.stop(Fiber.scheduler, fiber) if fiber && !handling
    end

    def handle_signal(block, number)
      spin { block.call(number) }
    end
  end

  # A signal's handler that {Heddle.trap} has set. Several may be set for a signal, and are restored in any order: a
  # handler that has another one on top of it leaves its place to the one below it.
  class Trap
    GUARD = Guard.new
    # All that are set, in order.
    SET = [] # rubocop:disable Style/MutableConstant -- the guard protects it
    private_constant :GUARD, :SET

    # @param signal [String, Symbol, Integer]
    # @param handler [Proc] no other Trap has this one
    def initialize(signal, handler)
      @signal = signal
      @handler = handler
    end

    # Sets the handler.
    def set
      GUARD.synchronize do
        @previous = Signal.trap(@signal, @handler)
        SET << self
      end
    end

    # Restores what was there before. A handler that the program has set since stays. A second call does nothing.
    def restore
      GUARD.synchronize do
        next unless SET.delete(self)
        next if SET.any? { |other| other.replace_previous(@handler, @previous) }

        found = Signal.trap(@signal, @previous || "DEFAULT")
        Signal.trap(@signal, found || "DEFAULT") unless found.equal?(@handler)
      end
    end

    # Call it with the guard.
    #
    # @return [Boolean] whether this one has replaced `handler`, and now restores `below` instead
    def replace_previous(handler, below) # rubocop:disable Naming/PredicateMethod -- it is an action
      return false unless @previous.equal?(handler)

      @previous = below
      true
    end
  end
  private_constant :Trap
end
