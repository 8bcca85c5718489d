# frozen_string_literal: true

# A task that is raised into while it waits for a condition has its Mutex again

mutex = Mutex.new
owned = nil
victim = task do
  mutex.synchronize do
    ConditionVariable.new.wait(mutex)
  rescue ArgumentError
    owned = mutex.owned?
    raise
  end
end
settle
victim.raise(ArgumentError, "poke")
say attempt { victim.value }, owned, mutex.locked?
