# frozen_string_literal: true

module Heddle # :nodoc:
  # Raises a helpful error if a program runs Async on a thread with a Heddle scheduler, without `heddle/async`. Async
  # calls `add_child` on the thread's scheduler to make its tasks the scheduler's children.
  module AsyncRefusal
    # @api private
    # @raise [RuntimeError]
    def add_child(*)
      raise "Async's tasks need an adapter to run on this thread's scheduler, a #{self.class}: add " \
            "require \"heddle/async\", or run Async on a thread without Heddle, as in " \
            "`Thread.new { Async { work } }.join`"
    end
  end
  private_constant :AsyncRefusal

  Scheduler.include(AsyncRefusal)
end
