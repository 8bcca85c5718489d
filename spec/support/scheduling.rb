# frozen_string_literal: true

# Threads with a scheduler of their own, for examples about a scheduler's root fiber or about several threads.
module Scheduling
  # Starts a thread whose root fiber sets a scheduler and runs the block. The thread ends when all of its fibers have.
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

  # How many entries the current fiber's scheduler has, by kind, such as fibers, timers and operations.
  def state_counts
    Fiber.scheduler.__send__(:counts)
  end

  # Returns when the thread waits for something, or has ended.
  def until_asleep(thread)
    Thread.pass until thread.stop?
  end

  # Returns the duration of the block in seconds.
  def seconds
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    yield
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
  end

  # Lets a fiber sleep for each of the times, and returns these in the order in which the sleeps have ended. It does so
  # again if not all had begun before the first of two of them could be over: on a machine that stands still meanwhile,
  # a fiber that begins late ends late.
  def order_of_sleeps(times)
    closest = times.sort.each_cons(2).map { |one, other| other - one }.min
    loop do
      ended = Queue.new
      took = seconds { times.each { |time| Fiber.schedule { sleep(time) && ended.push(time) } } }
      order = Array.new(times.size) { ended.pop }
      return order if took < closest
    end
  end

  # Lets the other fibers of this thread run until the condition holds.
  def pass_until
    sleep(0) until yield
  end
end
