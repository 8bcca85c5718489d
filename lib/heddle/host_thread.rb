# frozen_string_literal: true

module Heddle
  # A thread of Heddle's own that runs requests, jobs or tasks as fibers. To them each fiber is what a thread is
  # elsewhere, and no caller could rescue what ends the thread. So an error with which
  # `Thread.abort_on_exception` ends the program is raised where Ruby raises that of a thread: in the main thread. The
  # other fibers continue.
  class HostThread < Thread
    # @param error [Exception] which has ended a fiber of this thread, whose `abort_on_exception` is true
    # @return [Boolean] whether it was raised; false in a child that this thread has forked, where it is the main thread
    def raise_in_main(error) # rubocop:disable Naming/PredicateMethod -- it is an action
      main = Thread.main
      return false if equal?(main)

      main.raise(error)
      true
    end
  end
  private_constant :HostThread
end
