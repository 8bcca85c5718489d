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
    # @return [Fiber] the fiber that waits for the signals; {terminate} ends it, and restores the handlers
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
      # Heddle sends an exception that a handler raises to the root at once, even while a fiber computes.
      handler = block ? ->(number) { arrived << number } : ->(number) { raise SignalException, number }
      previous = []
      # The newest first: a signal that is given twice, as HUP and as SIGHUP, gets its oldest handler back last.
      signals.each { |signal| previous.unshift([signal, Signal.trap(signal, &handler)]) }
      handle_signals(arrived, previous, block)
    rescue Exception # rubocop:disable Lint/RescueException -- raised again
      restore_traps(previous) if previous
      raise
    end

    private

    def handle_signals(arrived, previous, block)
      begun = false
      fiber = spin do
        begun = true
        while (number = arrived.pop)
          handle_signal(block, number)
        end
      ensure
        restore_traps(previous)
      end
      # The `ensure` of a fiber that is stopped before it has begun does not run. So it must begin first.
      snooze until begun
      fiber
    end

    def handle_signal(block, number)
      spin { block.call(number) }
    end

    def restore_traps(previous)
      previous.each { |signal, handler| Signal.trap(signal, handler || "DEFAULT") }
    end
  end
end
