# frozen_string_literal: true

# Reads the process's native threads, among them those of the tickers :timerfd. Earlier examples may have left tickers
# that have stopped to tick.
module Ticking
  # How many of the usual ticks {share} waits for.
  TICKS = 30
  TASKS = "/proc/self/task"
  TICKER = "heddle ticker"

  module_function

  # The names of the threads, by number. A thread that ends meanwhile has an empty name.
  def threads
    Dir.children(TASKS).to_h { |task| [task, read(task, "comm").chomp] }
  end

  # The number of tickers.
  def tickers
    threads.values.count(TICKER)
  end

  # How often the tickers have been woken, but for the threads that `earlier` has.
  def wakings(earlier = {})
    threads.sum { |task, name| name == TICKER && !earlier.key?(task) ? wakings_of(task) : 0 }
  end

  # How many tickers' wake-ups there are for each of the usual ticks, at an interval of `tick` seconds, while the block
  # runs. It gets the time, by {Clock.now}, until which it is to run. On a busy machine it may not have run for most of
  # that.
  def share(tick, earlier)
    began = Clock.now
    before = wakings(earlier)
    yield began + (TICKS * tick)
    (wakings(earlier) - before) * tick / (Clock.now - began)
  end

  # How often this native thread has been woken. The main thread has the number of the process.
  def wakings_of(task)
    read(task, "status")[/^voluntary_ctxt_switches:\s*(\d+)/, 1].to_i
  end

  def read(task, file)
    File.read("#{TASKS}/#{task}/#{file}")
  rescue Errno::ENOENT, Errno::ESRCH
    ""
  end
end
