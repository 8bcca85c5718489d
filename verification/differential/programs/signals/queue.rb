# frozen_string_literal: true

# A trap handler wakes a task by a Queue

queue = Queue.new
trap("USR1") { queue << :signal }
waiter = task { queue.pop }
settle
Process.kill(:USR1, Process.pid)
say waiter.value
