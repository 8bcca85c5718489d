# frozen_string_literal: true

# Threads with a scheduler of their own, for what is about a scheduler's root fiber or about several threads.
module Scheduling
  # A thread whose root fiber has a scheduler and runs the block. It ends when all of its fibers have.
  def scheduled_thread(**options)
    Thread.new do
      Thread.current.report_on_exception = false
      scheduler = Heddle::Scheduler.new(**options)
      Fiber.set_scheduler(scheduler)
      yield scheduler
    end
  end

  # Runs the block in the root fiber of such a thread, and returns its value when all of its fibers have ended.
  def with_scheduler(...)
    scheduled_thread(...).value
  end

  # Returns when the thread waits for something, or has ended.
  def until_asleep(thread)
    Thread.pass until thread.stop?
  end

  # A clock for what must not come too early, or not take as long as a wait that should have been cut short.
  def seconds
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    yield
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
  end

  # Gives the others of this thread their turn until the condition holds.
  def pass_until
    sleep(0) until yield
  end
end

RSpec.configure { |config| config.include Scheduling }
