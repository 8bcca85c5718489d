# frozen_string_literal: true

# SizedQueue#max= makes room for the tasks that push

queue = SizedQueue.new(1)
writers = Array.new(4) { |number| task { (queue << number) && :pushed } }
settle
queue.max = 10
say writers.map(&:value), Array.new(4) { queue.pop }.sort, attempt { queue.max = 0 }
queue.clear
say queue.empty?, queue.pop(timeout: 0)
