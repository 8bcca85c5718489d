# frozen_string_literal: true

module Heddle # :nodoc:
  class << self
    # Handles signals in the tree of fibers. The block runs in a fiber, a child of the one that calls, and may do all
    # that a fiber may: Ruby's own `trap` runs its block wherever the main thread happens to be, and forbids it a Mutex.
    #
    # Without a block, the signals stop the tree: each fiber is told to end, its `ensure` runs, and then the process
    # dies by the signal, so that a shell sees the status 128 + number. A second one doesn't wait. SIGINT and SIGTERM
    # do so anyway.
    #
    # It lasts until the fiber that calls ends; then the signals are handled as before.
    #
    # @param signals [Array<String, Symbol, Integer>] as Ruby's `trap` takes them
    # @yieldparam number [Integer] the signal
    # @return [Fiber] the fiber that waits for the signals; when it is terminated, it is over, too
    # @raise [ArgumentError] without signals, or for one that is unknown, or Ruby's own
    # @raise [Errno::EINVAL] for one that can't be handled
    # @example
    #   Heddle.run do
    #     Heddle.trap("HUP") { reload }
    #     Heddle.trap("QUIT")
    #     serve
    #   end
    def trap(*signals, &block)
      raise ArgumentError, "Heddle.trap needs a signal at least" if signals.empty?

      arrived = Thread::Queue.new
      # What is raised here goes to the root at once, even while a fiber computes.
      handler = block ? ->(number) { arrived << number } : ->(number) { raise SignalException, number }
      previous = {}
      signals.each { |signal| previous[signal] = Signal.trap(signal, &handler) }
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
      # So that the `ensure` is sure to run: a fiber that is stopped before its first turn has none.
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
