# frozen_string_literal: true

# A lock whose wait timed out is not held

mutex = Mutex.new
over = Queue.new
holder = task { mutex.synchronize { over.pop } }
settle
say attempt { Timeout.timeout(0.02) { mutex.synchronize { :mine } } }
over << true
holder.join
say mutex.locked?, mutex.try_lock, mutex.owned?
