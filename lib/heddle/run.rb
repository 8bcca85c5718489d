# frozen_string_literal: true

# A Fiber::Scheduler over io_uring (or epoll), written in Rust.
module Heddle
  # Runs a block, and all fibers that it schedules, under a scheduler of their own on this thread.
  #
  # The block runs in a non-blocking fiber, the root of the tree of those that {spin} makes: when it ends, these are
  # told to end. When all others (those of `Fiber.schedule`) have ended, too, the scheduler is closed.
  #
  # SIGINT and SIGTERM end every fiber, running its `ensure`; a second one doesn't wait for that. The process then dies
  # by the signal, so that a shell sees the status 130 or 143.
  #
  # @param options [Hash] see {Scheduler#initialize}
  # @yield what is to be run
  # @return [Object] the block's value
  # @raise [ArgumentError] without a block, or with a bad option
  # @raise [RuntimeError] if this thread has a scheduler already
  # @raise what the block raises, once the other fibers have ended
  # @example Three waits at a time
  #   Heddle.run do
  #     3.times { Fiber.schedule { sleep 1 } }
  #   end # takes one second
  def self.run(**, &block)
    raise ArgumentError, "Heddle.run needs a block" unless block_given?
    raise "this thread has a scheduler already (#{Fiber.scheduler.class}): use Fiber.schedule" if Fiber.scheduler

    Fiber.set_scheduler(Scheduler.new(**))
    value = error = nil
    begin
      Fiber.schedule do
        task = Task.new(Fiber.scheduler)
        task.belong_to(Fiber.current)
        task.block = block
        Heddle.without_preemption do
          task.carry { yield } # rubocop:disable Style/ExplicitBlockArgument -- must yield in the caller's frame
        end
        value = task.value
        # Raised again below, `exit` included.
        error = task.error
      end
    ensure
      Fiber.set_scheduler(nil)
    end
    raise error if error

    value
  end
end
