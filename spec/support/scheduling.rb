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

  # Like Heddle.run, with a clock that jumps to the next timer when all fibers wait: for examples about the order and
  # the effect of timers.
  def virtually(**, &)
    require "heddle/testing"
    Heddle::Testing.run(clock: :virtual, **, &)
  end

  # How many fibers, timers and operations the current fiber's scheduler has now.
  def state_counts
    stats = Fiber.scheduler.stats
    { fibers: stats[:fibers].values_at(:running, :runnable, :waiting).sum,
      **%i[timers operations].to_h { |kind| [kind, stats.dig(kind, :pending)] } }
  end

  # Returns when the thread waits in the kernel, or has ended. `Thread#stop?` alone is also true while the thread opens
  # a file, for instance.
  def until_asleep(thread)
    Settling.one(thread)
  end

  # Returns the duration of the block in seconds.
  def seconds
    started = Clock.now
    yield
    Clock.now - started
  end

  # Lets a fiber sleep for each of the durations. Returns the fibers' numbers in the order in which their sleeps have
  # ended, and the earliest and the latest time at which each sleep can have been due: it began between the moment
  # before and the moment when the next fiber began.
  def sleep_all(durations)
    begun = []
    woken = Queue.new
    durations.each_with_index do |duration, number|
      begun << Clock.now
      Fiber.schedule { sleep(duration) && woken.push(number) }
    end
    begun << Clock.now
    due = durations.each_with_index.map { |duration, number| begun[number, 2].map { |time| time + duration } }
    [Array.new(durations.size) { woken.pop }, due]
  end

  # Returns how many of these sleeps have ended after one that was due later for certain.
  def overtaken_sleeps(durations)
    order, due = sleep_all(durations)
    latest = 0
    order.count do |number|
      earliest, at_last = due[number]
      (latest > at_last).tap { latest = [latest, earliest].max }
    end
  end

  # Lets the other fibers of this thread run until all of them have begun and wait. A short sleep may end before that:
  # fibers that are woken run before those that have yet to begin.
  def until_others_wait
    scheduler = Fiber.scheduler
    pass_until { Heddle.fibers.none? { |fiber| fiber.state == :runnable && fiber.scheduler.equal?(scheduler) } }
  end

  # Lets the other fibers of this thread run until the condition holds.
  def pass_until
    sleep(0) until yield
  end
end
