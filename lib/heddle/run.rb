# frozen_string_literal: true

# A Fiber::Scheduler over io_uring (or epoll), written in Rust.
module Heddle
  # Runs a block, and all fibers that it schedules, under a scheduler of their own on this thread.
  #
  # The block runs in a non-blocking fiber. When it and all other fibers have ended, the scheduler is closed.
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
  def self.run(**)
    raise ArgumentError, "Heddle.run needs a block" unless block_given?
    raise "this thread has a scheduler already (#{Fiber.scheduler.class}): use Fiber.schedule" if Fiber.scheduler

    Fiber.set_scheduler(Scheduler.new(**))
    value = error = nil
    begin
      Fiber.schedule do
        value = yield
      rescue SignalException, Stop
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised again below, `exit` included
        error = e
      end
    ensure
      Fiber.set_scheduler(nil)
    end
    raise error if error

    value
  end
end
