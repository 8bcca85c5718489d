# frozen_string_literal: true

module Heddle
  # The part of the hook `blocking_operation_wait` that is written in Ruby: runs an operation in a thread.
  module BlockingWork
    GUARD = Guard.new
    private_constant :GUARD

    @busy = 0
    @generation = Native.generation

    # Runs the operation, and waits for it. The extension calls this.
    #
    # @param work [#call] the operation
    # @param most [Integer] the highest number of threads at a time
    # @return [Object, nil] the operation's value; nil if all threads are busy, so that Ruby runs the operation in place
    # @raise what the operation raises
    def self.in_thread(work, most)
      return unless (generation = enter(most))

      begin
        # The operation uses memory on the stack of the calling fiber. So neither an exception nor Fiber#kill may leave
        # this method before the operation is over.
        WaitNames.within("a worker thread", nil) { HelperThread.run(joins: true) { work.call } }
      ensure
        GUARD.synchronize { @busy -= 1 if generation == @generation }
      end
    end

    # Counts a thread.
    #
    # @return [Integer, nil] the process's generation; nil if all threads are busy
    def self.enter(most)
      GUARD.synchronize do
        generation = Native.generation
        # In a forked child, the threads are its parent's.
        @busy = 0 unless @generation == generation
        @generation = generation
        next if @busy >= most

        @busy += 1
        generation
      end
    end
    private_class_method :enter
  end
  private_constant :BlockingWork
end
