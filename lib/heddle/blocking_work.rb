# frozen_string_literal: true

module Heddle
  # Does in a thread what Ruby's `blocking_operation_wait` hook is asked for.
  module BlockingWork
    @busy = 0

    # @param work [#call]
    # @param most [Integer] how many threads may work at a time; when all are busy, Ruby does the work in place
    def self.in_thread(work, most)
      return if @busy >= most

      @busy += 1
      begin
        finish(Thread.new { work.call })
      ensure
        @busy -= 1
      end
    end

    # The work uses memory on the stack of this fiber, so nothing may be raised out of here before it is over.
    def self.finish(thread)
      thread.report_on_exception = false
      thread.value
    rescue Exception # rubocop:disable Lint/RescueException -- raised again
      # Nor may the fiber be abandoned meanwhile.
      Fiber.scheduler.__send__(:hold_back) { kill(thread) }
      raise
    end

    def self.kill(thread)
      thread.kill.join
    rescue Exception # rubocop:disable Lint/RescueException -- the first one is raised, when it is time
      retry if thread.alive?
    end
    private_class_method :finish, :kill
  end
  private_constant :BlockingWork
end
