# frozen_string_literal: true

module Heddle
  class ThreadPool
    # Work that has been handed in.
    class Job
      # @api private
      def initialize(pool, work)
        @pool = pool
        @work = work
        @guard = Guard.new
        @waiters = []
        @state = :waiting
      end

      # Waits for the end of the work; in a thread of the pool, does it if nobody has begun.
      #
      # @return [Object] its value
      # @raise its error
      def await
        run if @pool.current?
        wait until ended?
        raise @error if @error

        @value
      end

      # @return [Boolean]
      def ended?
        @state == :ended
      end

      # @api private
      # Does the work, unless somebody else does, or nobody wants it any longer.
      def run
        return unless take(:running)

        begin
          value = @work.call
          finished = true
        rescue Exception => e # rubocop:disable Lint/RescueException -- raised again in who awaits the job
          error = e
        ensure
          # Also if the block has been left by a throw, or the thread is being killed.
          error ||= ThreadError.new("the work of #{inspect} did not come to its end") unless finished
          finish(value, error)
        end
      end

      # @api private
      # Nobody waits for it any longer.
      def withdraw
        take(:ended)
      end

      private

      def take(state)
        @guard.synchronize { @state == :waiting && (@state = state) && true }
      end

      def finish(value, error)
        @guard.synchronize do
          @value = value
          @error = error
          @state = :ended
          @waiters.each(&:wake).clear
        end
      end

      def wait
        waiter = Waiter.new
        @guard.synchronize { ended? ? waiter.wake : @waiters << waiter }
        waiter.wait
      ensure
        @guard.synchronize { @waiters.delete(waiter) }
      end
    end
  end
end
