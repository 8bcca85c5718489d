# frozen_string_literal: true

# Items go between tasks, threads and other schedulers in order

forth = Queue.new
back = SizedQueue.new(2)
thread = Thread.new { while (item = forth.pop) do back << (item * 2) end && nil }
other = elsewhere { while (item = back.pop) do forth.num_waiting.class && (@sum = @sum.to_i + item) end || @sum }
100.times { |number| forth << number }
forth.close
thread.join
back.close
say other.value
