# frozen_string_literal: true

module Heddle # :nodoc:
  # Async makes its tasks children of the thread's scheduler, whichever that is.
  module AsyncRefusal
    # What Async calls for that.
    #
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
