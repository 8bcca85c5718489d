# frozen_string_literal: true

module Heddle
  # Runs in a thread what Ruby does without a hook, or what a hook cannot describe: the fiber's own thread would stand
  # still.
  module HelperThread
    class << self
      # Runs the block in a thread, and waits for it. If the fiber's wait is broken off, the thread is killed.
      #
      # @param joins [Boolean] whether this method is left only when the thread has ended
      # @return [Object] the block's value
      # @raise the block's error, with the fiber's backtrace added
      # @raise [ThreadError] if another thread has killed the thread: what the block was to do may be undone
      def run(joins: false, &work)
        outcome = thread = nil
        # Assigned within the block: a fiber that is killed before it knows its thread would leave it running.
        Guard.uninterrupted { thread = Thread.new { outcome = outcome_of(&work) } }
        thread.join
        raise ThreadError, "the thread in which a fiber's call ran was killed before the call had ended" unless outcome

        value, error = outcome
        raise with_callers(error) if error

        value
      ensure
        # The fiber must not be abandoned while it waits for the thread's end.
        Native.uninterrupted { finish(thread, joins) if thread&.alive? }
      end

      private

      # The thread inherits the fiber's masks, but must end when it is killed. `Thread.abort_on_exception` does not see
      # the error.
      def outcome_of
        Thread.handle_interrupt(Object => :immediate) { [yield, nil] }
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised in the fiber
        [nil, e]
      end

      def with_callers(error)
        error.set_backtrace([*error.backtrace, *caller(2)]) unless error.frozen?
        error
      end

      def finish(thread, joins)
        joins ? end_thread(thread) : thread.kill
      end

      def end_thread(thread)
        thread.kill.join
      rescue Exception # rubocop:disable Lint/RescueException -- the caller raises the first exception
        retry if thread.alive?
      end
    end
  end
  private_constant :HelperThread
end
