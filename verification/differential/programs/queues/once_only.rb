# frozen_string_literal: true

# Items pushed by many tasks are popped once each

queue = SizedQueue.new(3)
producers = Array.new(5) { |number| task { 40.times { |item| queue << ((number * 40) + item) } } }
consumers = Array.new(4) { task { [].tap { |items| while (item = queue.pop) do items << item end } } }
producers.each(&:join)
queue.close
say consumers.flat_map(&:value).sort == [*0...200]
