# frozen_string_literal: true

# A child's queue works although tasks of the parent waited for it

queue = Queue.new
waiter = task { queue.pop }
settle
pid = fork do
  queue << :child
  exit!(queue.pop == :child ? 0 : 1)
end
say Process.wait2(pid).last.exitstatus
queue << :parent
say waiter.value
