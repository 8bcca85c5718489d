# frozen_string_literal: true

# A Mutex goes to each task that waits

mutex = Mutex.new
order = []
mutex.lock
waiters = Array.new(5) { |number| task { mutex.synchronize { (order << number) && sleep(0.001) } } }
settle
mutex.unlock
waiters.each(&:join)
say order.sort, mutex.locked?
