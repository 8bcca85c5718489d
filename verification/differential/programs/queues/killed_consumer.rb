# frozen_string_literal: true

# A consumer that is killed while it waits loses no item

queue = Queue.new
seen = Queue.new
10.times do |round|
  victim = task { loop { seen << queue.pop } }
  10.times { |number| queue << ((round * 10) + number) }
  settle
  victim.kill
  victim.join
end
queue << 100
say Array.new(seen.size) { seen.pop } == [*0...100], queue.size, queue.pop
