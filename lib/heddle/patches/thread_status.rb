# frozen_string_literal: true

module Heddle # :nodoc:
  # An `ensure` clause cannot tell a kill from the end of its block, and so libraries ask for the thread's status:
  # ActiveRecord and Sequel commit a transaction otherwise. In a fiber that is being killed the answer is a thread's.
  module ThreadStatus
    OF_THREAD = Thread.instance_method(:status)
    private_constant :OF_THREAD

    # @return [Boolean] whether the current thread is being killed, and not only its fiber
    def self.thread_aborting? = OF_THREAD.bind_call(Thread.current) == "aborting"

    # @return [String, false, nil] see Ruby's documentation
    def status
      equal?(Thread.current) && Native.being_killed? ? "aborting" : super
    end
  end
  private_constant :ThreadStatus

  Patches.add { Thread.prepend(ThreadStatus) }
end
