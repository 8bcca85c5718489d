# frozen_string_literal: true

module Heddle
  # A mutex that the coordination classes and the pools use for their own state. It works across threads and schedulers.
  class Guard
    # Object stands for what is no exception, too: the end of the thread. Ruby copies a Hash that does not compare by
    # identity, which takes twice as long.
    EVERYTHING = { Object => :never }.compare_by_identity.freeze
    private_constant :EVERYTHING

    class << self
      # Runs a block that must not be left half done. Exceptions from other fibers are raised in the fiber's first wait
      # after it, and those from other threads at its end. They do not come between the beginning of an `ensure` clause
      # and a block there, so what the block says in variables is what has happened.
      #
      # @return [Object] the block's value
      def uninterrupted
        # In this order: a method that ends in front of the first call would be a place to be preempted at.
        Native.uninterrupted do
          Thread.handle_interrupt(EVERYTHING) { yield } # rubocop:disable Style/ExplicitBlockArgument -- takes longer
        end
      end
    end

    def initialize
      @mutex = Thread::Mutex.new
    end

    # Runs a block that does not wait, uninterrupted and alone.
    #
    # @return [Object] the block's value
    def synchronize
      Guard.uninterrupted { @mutex.synchronize { yield } } # rubocop:disable Style/ExplicitBlockArgument -- takes longer
    end
  end
  private_constant :Guard
end
