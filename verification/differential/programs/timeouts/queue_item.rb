# frozen_string_literal: true

# An item that is pushed after a pop timed out goes to the next pop

queue = Queue.new
say attempt { Timeout.timeout(0.02) { queue.pop } }
queue << :item
say queue.pop, queue.num_waiting
