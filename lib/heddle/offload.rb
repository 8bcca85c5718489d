# frozen_string_literal: true

require_relative "../heddle"

unless Heddle.supported?
  require_relative "offload/unsupported"
  return
end

module Heddle
  # Runs calls that would block a scheduler's thread in threads of a pool, while the other fibers run. `require
  # "heddle/offload/mysql2"` and the like do that for the calls of a library.
  #
  # A call ends in the fiber as it would on a plain thread: what `Timeout.timeout`, {Heddle.cancel_after}, `Fiber#raise`
  # or `Fiber#kill` raise in the waiting fiber ends the call in its thread. The fiber continues when the call has ended,
  # so no two calls of a fiber ever use a connection at once. A call that nothing can interrupt delays that.
  module Offload
    # The number of threads unless the program says otherwise: the highest number of calls at once.
    DEFAULT_THREADS = 32

    @pool = ThreadPool.new(threads: DEFAULT_THREADS)

    class << self
      # @return [ThreadPool] the pool that runs the calls; its threads are started as they are needed
      attr_reader :pool

      # @param pool [ThreadPool] the pool for further calls
      # @raise [TypeError] if it is not a ThreadPool
      # @example
      #   Heddle::Offload.pool = Heddle::ThreadPool.new(threads: 100)
      def pool=(pool)
        unless pool.is_a?(ThreadPool)
          raise TypeError, "Heddle::Offload.pool=: must be a Heddle::ThreadPool, not #{pool.inspect}"
        end

        @pool = pool
      end

      # Runs the block in a thread of the pool if the current fiber belongs to a Heddle scheduler, and in place
      # otherwise: in blocking fibers, in other threads, and in the pool's own. In the pool's thread there is no
      # scheduler. `Fiber[]` is a copy of the fiber's.
      #
      # @yield the call that blocks
      # @return [Object] the block's value
      # @raise the block's error, or what was raised in the fiber meanwhile
      # @raise [ArgumentError] without a block
      # @example
      #   Heddle.run { rows = Heddle::Offload.call { statement.execute(7).to_a } }
      def call(&block)
        ArgumentChecks.block(block, "Heddle::Offload.call")
        return yield unless Fiber.current_scheduler.is_a?(Scheduler)

        Call.new(block).run(pool)
      end
    end

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
        Native.uninterrupted { finish(job) if job && !job.ended? }
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
