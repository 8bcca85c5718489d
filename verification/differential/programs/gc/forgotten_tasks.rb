# frozen_string_literal: true

# Tasks that nobody keeps run to their end

sum = 0
queue = Queue.new
100.times { |number| task { sleep(0.001) && (queue << number) } }
GC.start
100.times { sum += queue.pop }
say sum
