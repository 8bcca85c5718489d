# frozen_string_literal: true

# Waits until threads wait. Programs that run without RSpec require this file, too: it needs nothing but Ruby.
#
# A thread with a scheduler waits in the kernel when all of its fibers wait, so this is right for fibers, too.
module Settling
  PATH = __FILE__
  # Seconds between two looks at the threads.
  INTERVAL = 0.0005

  module_function

  # Returns when all other threads and fibers of the process wait. The caller waits meanwhile for a thread that looks at
  # all others, so that its scheduler can run the other fibers.
  def all
    helper = Thread.new do
      Thread.current[:settling] = true
      sleep(INTERVAL) until settled?(Thread.list.reject { |thread| thread[:settling] })
    end
    helper.join
  end

  # Returns when the thread waits or has ended. The caller is another thread.
  def one(thread)
    sleep(INTERVAL) until !thread.alive? || settled?([thread])
  end

  # A thread that waits for the GVL looks as if it were in its last wait. It gets the GVL in `Thread.pass`, and has then
  # been woken once more. So only what is the same before and after is a wait.
  def settled?(threads)
    before = threads.map { |thread| wait_of(thread) }
    return false unless before.all?

    Thread.pass
    threads.map { |thread| wait_of(thread) } == before
  end

  # The number of the thread and how often it has waited, or nil if it does not wait.
  def wait_of(thread)
    return unless thread.stop? && (number = thread.native_thread_id)

    status = File.read("/proc/self/task/#{number}/status")
    [number, status[/^voluntary_ctxt_switches:.*/]] if status.match?(/^State:\s+S/)
  rescue SystemCallError
    nil
  end
end
