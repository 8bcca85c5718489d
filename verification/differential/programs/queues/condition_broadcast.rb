# frozen_string_literal: true

# ConditionVariable#broadcast wakes every task, and each has the Mutex

mutex = Mutex.new
condition = ConditionVariable.new
open = false
waiters = Array.new(5) { task { mutex.synchronize { (condition.wait(mutex) until open) || mutex.owned? } } }
settle
mutex.synchronize { (open = true) && condition.broadcast }
say waiters.map(&:value).uniq, mutex.locked?
