# frozen_string_literal: true

module Heddle
  class ThreadPool
    # A block that a {ThreadPool} runs. It answers as a {Pool::Job} does.
    class Job
      # @api private
      def initialize(pool, arguments, work)
        @pool = pool
        @arguments = arguments
        @work = work
        @guard = Guard.new
        @waiters = []
        @state = :pending
      end

      # Waits for the block's end. A thread of the pool runs the block itself if no thread has started it.
      #
      # @return [Object] the block's value; nil for a job that was told to end before it started
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

      # Tells the job to end, and does not wait for that. A job that has not started never starts. Ruby code in another
      # thread cannot be ended safely: a job that has started continues.
      #
      # @return [self]
      def terminate
        finish(nil, nil) if claim
        self
      end

      # @return [String]
      def inspect
        "#<#{self.class} #{@work.source_location&.join(":")} #{@state}>"
      end

      # @api private
      # Runs the block, unless another thread has started it, or it has been told to end.
      def run
        return unless claim

        begin
          value = @work.call(*@arguments)
          finished = true
        rescue Exception => e # rubocop:disable Lint/RescueException -- raised again in the fiber that awaits the job
          error = e
        ensure
          # Runs also if the block was left by `throw`, or the thread is being killed.
          finished || error ? finish(value, error) : lose
        end
      end

      # @api private
      # The job's thread is being killed, or its block was left by `throw`.
      def lose
        return if ended?

        finish(nil, ThreadError.new("#{inspect}: its block was left by throw, or its thread was killed"))
      end

      private

      # @return [Boolean] whether the job was pending, and is running now
      def claim
        @guard.synchronize { @state == :pending && (@state = :running) && true }
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
