# frozen_string_literal: true

# A Mutex that a task leaves locked can be locked by the next one

mutex = Mutex.new
task { mutex.lock }.join
say task { attempt { Timeout.timeout(1) { mutex.lock && :locked } } }.value
