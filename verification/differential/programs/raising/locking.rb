# frozen_string_literal: true

# A task that is raised into while it waits for a Mutex does not have it

mutex = Mutex.new
mutex.lock
victim = task { attempt { mutex.lock }.then { |error| [error, mutex.owned?] } }
settle
victim.raise(ArgumentError, "poke")
say victim.value, mutex.owned?
mutex.unlock
say mutex.locked?
