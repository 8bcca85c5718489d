# frozen_string_literal: true

module Heddle
  module Offload
    # A block that a thread of a pool runs, for a fiber that waits for it.
    class Call
      # Ends the block in its thread. It is no StandardError, so that `rescue => e` in the block does not swallow it.
      class Ended < Exception; end # rubocop:disable Lint/InheritException

      # @param work [#call]
      def initialize(work)
        @work = work
        @guard = Guard.new
      end

      # @param pool [ThreadPool]
      # @return [Object] the block's value
      # @raise the block's error, or what was raised in the fiber, when the block has ended
      def run(pool)
        # The fiber waits, so the call is a part of what it does, rather than a unit of its own.
        job = pool.start(WorkContext.capture(wrap: false), [], -> { perform })
        job.await
      ensure
        # Also runs if the fiber is killed, which `rescue` does not see.
        Native.defer_raises(Fiber.scheduler) { finish(job) } if job && !job.ended?
      end

      private

      # The thread can be interrupted in the block only. What arrives too late is raised at the end of the outer block.
      def perform
        Thread.handle_interrupt(Ended => :never) do
          @guard.synchronize { @ended ? return : @thread = Thread.current }
          begin
            Thread.handle_interrupt(Ended => :immediate) { @work.call }
          ensure
            @guard.synchronize { @thread = nil }
          end
        end
      rescue Ended
        nil
      end

      def finish(job)
        job.terminate
        @guard.synchronize do
          @ended = true
          @thread&.raise(Ended)
        end
        job.await
      rescue Exception # rubocop:disable Lint/RescueException -- the fiber's own exception continues
        retry unless job.ended?
      end
    end
    private_constant :Call
  end
end
