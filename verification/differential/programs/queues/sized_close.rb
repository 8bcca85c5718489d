# frozen_string_literal: true

# SizedQueue#close wakes the tasks that push

queue = SizedQueue.new(1)
queue << 1
waiters = Array.new(3) { task { attempt { queue << 2 } } }
settle
say queue.num_waiting
queue.close
say waiters.map(&:value), queue.pop, queue.pop
