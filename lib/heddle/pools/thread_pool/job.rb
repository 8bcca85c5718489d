# frozen_string_literal: true

module Heddle
  class ThreadPool
    # A block that a {ThreadPool} runs.
    class Job
      # @api private
      def initialize(pool, work)
        @pool = pool
        @work = work
        @guard = Guard.new
        @waiters = []
        @state = :waiting
      end

      # Waits for the block's end. A thread of the pool runs the block itself if no thread has started it.
      #
      # @return [Object] the block's value
      # @raise the block's error
      # @raise [ThreadError] if the block was left by `throw`, or its thread was killed
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
      # Runs the block, unless another thread has started it, or it has been withdrawn.
      def run
        return unless claim(:running)

        begin
          value = @work.call
          finished = true
        rescue Exception => e # rubocop:disable Lint/RescueException -- raised again in the fiber that awaits the job
          error = e
        ensure
          # Runs also if the block was left by `throw`, or the thread is being killed.
          error ||= ThreadError.new("#{inspect}: its block was left by throw, or its thread was killed") unless finished
          finish(value, error)
        end
      end

      # @api private
      # Ends the job if it has not started. Its result is no longer needed.
      def withdraw
        claim(:ended)
      end

      private

      # @return [Boolean] whether the job was waiting, and has the new state now
      def claim(state)
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
