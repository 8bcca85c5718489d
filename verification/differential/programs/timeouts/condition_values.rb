# frozen_string_literal: true

# ConditionVariable#wait and Mutex#sleep return what they do on a thread

mutex = Mutex.new
condition = ConditionVariable.new
say mutex.synchronize { condition.wait(mutex, 0.01).class }
say mutex.synchronize { mutex.sleep(0.01).class }, mutex.locked?
signaller = task { settle && mutex.synchronize { condition.signal } }
say mutex.synchronize { condition.wait(mutex, 20).class }
say attempt { condition.wait(mutex, 0.01) }, attempt { mutex.sleep(0.01).class }
signaller.join
