# frozen_string_literal: true

# Looks at the native threads of the tickers :timerfd. Earlier examples may have left some that tick no more.
module Ticking
  TASKS = "/proc/self/task"

  module_function

  # How often they were woken up to now.
  def wakings
    Dir.children(TASKS).sum do |task|
      next 0 unless File.read("#{TASKS}/#{task}/comm").chomp == "heddle ticker"

      Integer(File.read("#{TASKS}/#{task}/status")[/^voluntary_ctxt_switches:\s*(\d+)/, 1])
    rescue Errno::ENOENT, Errno::ESRCH
      # A thread of Ruby's that has ended meanwhile.
      0
    end
  end
end
