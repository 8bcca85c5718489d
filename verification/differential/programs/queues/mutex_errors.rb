# frozen_string_literal: true

# A Mutex refuses what it refuses on a thread

mutex = Mutex.new
say attempt { mutex.unlock }, mutex.lock.equal?(mutex), attempt { mutex.lock }, mutex.try_lock
say task { [mutex.owned?, mutex.locked?, attempt { mutex.unlock }.sub(/\w+$/, "")] }.value.first(2)
say mutex.unlock.locked?
