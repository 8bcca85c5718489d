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
    threads.sum do |task, name|
      name == TICKER ? read(task, "status")[/^voluntary_ctxt_switches:\s*(\d+)/, 1].to_i : 0
    end
  end

  def read(task, file)
    File.read("#{TASKS}/#{task}/#{file}")
  rescue Errno::ENOENT, Errno::ESRCH
    ""
  end
end
