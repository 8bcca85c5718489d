# frozen_string_literal: true

# A signal goes to a task that lives, not to one that was killed

mutex = Mutex.new
condition = ConditionVariable.new
victim = task { mutex.synchronize { condition.wait(mutex) } }
settle
other = task { mutex.synchronize { condition.wait(mutex) && :signalled } }
settle
victim.kill
victim.join
mutex.synchronize { condition.signal }
say other.value, mutex.locked?
