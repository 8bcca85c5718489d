# frozen_string_literal: true

module Heddle
  # What every fiber of a scheduler runs: its block, and then what the scheduler does at its end.
  #
  # This is Ruby, so Ruby's interpreter calls the block without another C frame. If the extension called the block, each
  # fiber would need 1.3 KiB more of its stack for as long as it lives. All of a waiting fiber's C frames fit into one
  # page of memory, and the garbage collector scans fewer words at each collection.
  #
  # The extension defines {begin_block}, the three methods for the block's end, and `BlockError`, which matches every
  # exception.
  module FiberBody
    # The scheduler passes itself and the block's arguments when it starts the fiber. Ruby checks interrupts at the end
    # of {begin_block}, and what is raised there counts as the block's error. After `ended = true` no interrupt is
    # checked before the extension's method has begun, so one of the three is called, and once. To match an exception
    # Ruby calls a method, at whose end it does check interrupts. From then on `BlockError` keeps them from the fiber.
    CODE = lambda do |scheduler = nil, arguments = nil|
      ended = false
      begin
        block = begin_block(scheduler)
        value = arguments ? block.call(*arguments) : block.call
      rescue BlockError => e
        ended = true
        fail_block(scheduler, block, e)
      else
        ended = true
        end_block(scheduler, block, value)
      ensure
        # The fiber is being killed.
        kill_block(scheduler, block) unless ended
      end
    end

    # @return [Proc] the code of a fiber that any fiber may start. It is no lambda, as it ignores the arguments of a
    #   program's `transfer`
    def self.for(scheduler) = proc { CODE.call(scheduler) }
  end
  private_constant :FiberBody

  # The extension's functions for Heddle's Ruby code. Those that concern a scheduler take it as their first argument.
  #
  # @api private
  module Native
    # Runs the program's part of a fiber whose other parts must not be interrupted. In the block the fiber may be
    # preempted. `ensure` has no branch: an interrupt would be checked there, and could keep the part from ending.
    # `is_last` says that the program has no part in the fiber after this one.
    def self.run_user_block(scheduler, is_last)
      entered = nil
      entered = enter_user_block(scheduler)
      yield
    ensure
      leave_user_block(scheduler, entered, is_last)
    end
  end
end
