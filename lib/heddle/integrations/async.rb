# frozen_string_literal: true

module Heddle # :nodoc:
  # Raises a helpful error if a program runs Async on a thread with a Heddle scheduler. Async calls `add_child` on the
  # thread's scheduler to make its tasks the scheduler's children.
  module AsyncRefusal
    # @api private
    # @raise [RuntimeError]
    def add_child(*)
      raise "Async needs a scheduler of its own, and this thread's is a #{self.class}. " \
            "Run Async on a thread without Heddle, as in `Thread.new { Async { work } }.join`; " \
            "on this one use Fiber.schedule or Heddle.spin instead"
    end
  end
  private_constant :AsyncRefusal

  Scheduler.include(AsyncRefusal)
end
