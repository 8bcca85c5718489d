# frozen_string_literal: true

module Heddle # :nodoc:
  # Tells a timeout of `Mutex#sleep` and `ConditionVariable#wait` from a wake-up. Ruby ignores what the scheduler's hook
  # returns, and always reports a wake-up. So a timeout, also of a monitor's condition, would look like a signal.
  module MutexSleep
    # Unlocks, sleeps and locks again; see Ruby's documentation.
    def sleep(timeout = nil)
      slept = super
      return slept if timeout.nil? || !(scheduler = Fiber.current_scheduler).is_a?(Scheduler)

      slept if scheduler.__send__(:sleep_was_ended)
    end
  end
  private_constant :MutexSleep

  # The same from Ruby 4.0 on, where `ConditionVariable#wait` does not call `Mutex#sleep`.
  module ConditionWait
    # Unlocks the mutex, waits and locks it again; see Ruby's documentation.
    def wait(mutex, timeout = nil)
      slept = super
      return slept if timeout.nil? || !(scheduler = Fiber.current_scheduler).is_a?(Scheduler)

      slept if scheduler.__send__(:sleep_was_ended)
    end
  end
  private_constant :ConditionWait

  Thread::Mutex.prepend(MutexSleep)
  Thread::ConditionVariable.prepend(ConditionWait) if RUBY_VERSION >= "4.0"
end
