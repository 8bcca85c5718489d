# frozen_string_literal: true

# Queue#pop with a limit returns nil, or an item that comes in time

queue = Queue.new
say queue.pop(timeout: 0.001)
late = task { settle && (queue << :item) }
say queue.pop(timeout: 20), queue.pop(timeout: 0.001), queue.num_waiting
late.join
