# frozen_string_literal: true

# Looks at the process's native threads, among them those of the tickers :timerfd. Earlier examples may have left some
# of these that tick no more.
module Ticking
  TASKS = "/proc/self/task"
  TICKER = "heddle ticker"

  module_function

  # Their names, by number. One that ends meanwhile has none.
  def threads
    Dir.children(TASKS).to_h { |task| [task, read(task, "comm").chomp] }
  end

  # How many of them are tickers'.
  def tickers
    threads.values.count(TICKER)
  end

  # How often those were woken up to now.
  def wakings
    threads.sum { |task, name| name == TICKER ? wakings_of(task) : 0 }
  end

  # How often this native thread was woken up to now. A process's first one has the process's number.
  def wakings_of(task)
    read(task, "status")[/^voluntary_ctxt_switches:\s*(\d+)/, 1].to_i
  end

  def read(task, file)
    File.read("#{TASKS}/#{task}/#{file}")
  rescue Errno::ENOENT, Errno::ESRCH
    ""
  end
end
