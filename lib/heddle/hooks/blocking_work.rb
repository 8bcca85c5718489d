# frozen_string_literal: true

module Heddle
  # The part of the hook `blocking_operation_wait` that is written in Ruby: runs an operation in a thread.
  module BlockingWork
    @busy = 0
    @generation = Native.generation

    # Runs the operation, and waits for it. The extension calls this.
    #
    # @param work [#call] the operation
    # @param most [Integer] the highest number of threads at a time
    # @return [Object, nil] the operation's value; nil if all threads are busy, so that Ruby runs the operation in place
    # @raise what the operation raises
    def self.in_thread(work, most)
      generation = Native.generation
      # In a forked child, the threads are its parent's.
      @busy = 0 unless @generation == generation
      @generation = generation
      return if @busy >= most

      @busy += 1
      begin
        WaitNames.within("a worker thread", nil) { wait_for(Thread.new { work.call }) }
      ensure
        @busy -= 1 if generation == @generation
      end
    end

    # The operation uses memory on the stack of the calling fiber. So neither an exception nor Fiber#kill may leave this
    # method before the operation is over.
    def self.wait_for(thread)
      thread.report_on_exception = false
      thread.value
    ensure
      # The fiber must not be abandoned in the meantime, either.
      Native.defer_raises(Fiber.scheduler) { kill(thread) } if thread.alive?
    end

    def self.kill(thread)
      thread.kill.join
    rescue Exception # rubocop:disable Lint/RescueException -- the caller raises the first exception
      retry if thread.alive?
    end
    private_class_method :wait_for, :kill
  end
  private_constant :BlockingWork
end
