# frozen_string_literal: true

# A killed task takes no item from the queue that it waited for

queue = Queue.new
victim = task { queue.pop }
other = task { queue.pop }
settle
victim.kill
victim.join
queue << :item
say other.value, queue.size, queue.num_waiting
