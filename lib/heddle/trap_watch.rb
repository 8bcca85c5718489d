# frozen_string_literal: true

module Heddle # :nodoc:
  # A program may want the signal that a ticker has taken. Then it gets it, and the ticker goes on without a signal.
  # Loaded into `trap` when the first ticker takes a signal, and not before.
  module TrapWatch
    # Handles a signal; see Ruby's documentation.
    def trap(signal, ...)
      Heddle.__send__(:trapping, signal)
      super
    end

    def self.begin
      return if @begun

      Signal.singleton_class.prepend(self)
      Kernel.prepend(self)
      Kernel.singleton_class.prepend(self)
      @begun = true
    end
  end
  private_constant :TrapWatch
end
