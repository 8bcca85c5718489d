# frozen_string_literal: true

# A Fiber::Scheduler over io_uring (or epoll), written in Rust.
module Heddle
  # Runs a block, and all fibers that it schedules, under a new scheduler on this thread.
  #
  # The block runs in a non-blocking fiber, which is the root of the tree of fibers that {spin} makes. When the block
  # ends, those fibers are told to end. When the fibers of `Fiber.schedule` have ended, too, the scheduler is closed.
  #
  # SIGINT and SIGTERM end every fiber, running its `ensure`. A second signal does not wait for that. The process then
  # dies by the signal, so that a shell sees the status 130 or 143.
  #
  # @param options [Hash] see {Scheduler#initialize}
  # @yield the program
  # @return [Object] the block's value
  # @raise [ArgumentError] without a block, or for an invalid option
  # @raise [RuntimeError] if this thread has a scheduler already
  # @raise the block's error, when the other fibers have ended
  # @example Wait three times at once
  #   Heddle.run do
  #     3.times { Fiber.schedule { sleep 1 } }
  #   end # takes one second
  def self.run(**, &block)
    ArgumentChecks.block(block, "Heddle.run")
    expect_no_scheduler
    Fiber.set_scheduler(Scheduler.new(**))
    value = error = nil
    begin
      Fiber.schedule do
        task = Task.new(Fiber.scheduler)
        task.assign_to(Fiber.current)
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

  def self.expect_no_scheduler
    return unless Fiber.scheduler

    raise "Heddle.run: this thread has a scheduler already (#{Fiber.scheduler.class}): call Fiber.schedule instead"
  end
  private_class_method :expect_no_scheduler
end
