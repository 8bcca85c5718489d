# frozen_string_literal: true

# A lock whose wait timed out is not held

mutex = Mutex.new
holder = task { mutex.synchronize { sleep(0.1) } }
settle
say attempt { Timeout.timeout(0.02) { mutex.synchronize { :mine } } }
holder.join
say mutex.locked?, mutex.try_lock, mutex.owned?
