# frozen_string_literal: true

# A consumer that is killed again and again loses no item that it has not popped

queue = Queue.new
seen = Queue.new
sweeper = task do
  10.times do
    victim = task { loop { seen << queue.pop } }
    sleep(0.002)
    victim.kill
    victim.join
  end
end
100.times { |number| (queue << number) && sleep(0.0001) }
sweeper.join
say (Array.new(seen.size) { seen.pop } + Array.new(queue.size) { queue.pop }).sort == [*0...100]
