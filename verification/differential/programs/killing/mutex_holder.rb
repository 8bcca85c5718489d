# frozen_string_literal: true

# A killed task's Mutex is unlocked by `synchronize`

mutex = Mutex.new
victim = task { mutex.synchronize { sleep } }
settle
waiter = task { mutex.synchronize { :mine } }
settle
victim.kill
say waiter.value, mutex.locked?
