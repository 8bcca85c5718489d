# frozen_string_literal: true

module Heddle # :nodoc:
  # Tells a timeout of `Mutex#sleep` and `ConditionVariable#wait` from a wake-up. Ruby ignores what the scheduler's hook
  # returns, and always reports a wake-up. So a timeout, also of a monitor's condition, would look like a signal.
  #
  # Raises what was raised into the fiber while it waited to lock the mutex again: as in a thread, when it has the lock.
  module MutexSleep
    # Unlocks, sleeps and locks again; see Ruby's documentation.
    def sleep(timeout = nil)
      slept = super
      slept if Native.locked_again || timeout.nil?
    end
  end
  private_constant :MutexSleep

  # The same from Ruby 4.0 on, where `ConditionVariable#wait` does not call `Mutex#sleep`.
  module ConditionWait
    # Unlocks the mutex, waits and locks it again; see Ruby's documentation.
    def wait(mutex, timeout = nil)
      slept = super
      slept if Native.locked_again || timeout.nil?
    end
  end
  private_constant :ConditionWait

  Patches.add do
    Thread::Mutex.prepend(MutexSleep)
    Thread::ConditionVariable.prepend(ConditionWait) if RUBY_VERSION >= "4.0"
  end
end
