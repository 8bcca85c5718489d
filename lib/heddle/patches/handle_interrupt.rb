# frozen_string_literal: true

module Heddle # :nodoc:
  # A block with a mask that lets an exception through, as `ConnectionPool#with` has one, lets through what is meant for
  # the fiber that runs the block, and not what is meant for the thread's root or for another fiber.
  module HandleInterrupt
    # Runs a block with a mask; see Ruby's documentation.
    def handle_interrupt(mask) = super(Native.gated_mask(mask))
  end
  private_constant :HandleInterrupt

  Patches.add { Thread.singleton_class.prepend(HandleInterrupt) }
end
