# frozen_string_literal: true

# Queue#close wakes every task that waits, and refuses items

queue = Queue.new
waiters = Array.new(3) { task { queue.pop } }
settle
say queue.num_waiting, queue.close.closed?, waiters.map(&:value), attempt { queue << 1 }, queue.pop
