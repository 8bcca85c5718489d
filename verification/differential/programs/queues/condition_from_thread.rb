# frozen_string_literal: true

# A thread signals the condition that tasks wait for

mutex = Mutex.new
condition = ConditionVariable.new
items = []
waiters = Array.new(3) { task { mutex.synchronize { (condition.wait(mutex) while items.empty?) || items.pop } } }
settle
Thread.new { 3.times { mutex.synchronize { (items << true) && condition.signal } } }.join
mutex.synchronize { condition.broadcast }
say waiters.map { |waiter| waiter.join(20) ? waiter.value : :waits }
