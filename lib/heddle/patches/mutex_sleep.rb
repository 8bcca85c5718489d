# frozen_string_literal: true

module Heddle # :nodoc:
  # Tells a timeout of `Mutex#sleep` from a wake-up. Ruby ignores what the scheduler's hook returns, and always reports
  # a wake-up. So a timeout of `ConditionVariable#wait`, or of a monitor's condition, would look like a signal.
  module MutexSleep
    # Unlocks, sleeps and locks again; see Ruby's documentation.
    def sleep(timeout = nil)
      slept = super
      return slept if timeout.nil? || !(scheduler = Fiber.current_scheduler).is_a?(Scheduler)

      slept if scheduler.__send__(:sleep_was_ended)
    end
  end
  private_constant :MutexSleep

  Thread::Mutex.prepend(MutexSleep)
end
