# frozen_string_literal: true

module Heddle # :nodoc:
  # Ruby lets the scheduler sleep and then takes the sleeper for woken, whatever the scheduler answers: a time-out of
  # `Mutex#sleep`, and so of `ConditionVariable#wait` and of a monitor's condition, would look like a signal.
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
