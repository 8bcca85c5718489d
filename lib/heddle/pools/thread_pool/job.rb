# frozen_string_literal: true

module Heddle
  class ThreadPool
    # A block that a {ThreadPool} runs. It answers as a {Pool::Job} does.
    class Job
      # @api private
      def initialize(pool, context, arguments, work)
        @pool = pool
        @context = context
        @arguments = arguments
        @work = work
        @guard = Guard.new
        @end = Waiter.new
        @state = :pending
      end

      # Waits for the block's end. A thread of the pool runs the block itself if no thread has started it.
      #
      # @return [Object] the block's value; nil for a job that was stopped before it started
      # @raise the block's error
      # @raise [ThreadError] if the block was left by `throw`, or its thread was killed
      def await
        run if @pool.current?
        @end.wait unless ended?
        raise @error if @error

        @value
      end

      # @return [Boolean]
      def ended?
        @state == :ended
      end

      # Stops the job, and does not wait for its end. A job that has not started never starts. Ruby code in another
      # thread cannot be ended safely: a job that has started continues.
      #
      # @return [self]
      def terminate
        Guard.uninterrupted { finish(nil, nil) if @guard.synchronize { claim } }
        self
      end

      # @return [String]
      def inspect
        "#<#{self.class} #{@work.source_location&.join(":")} #{@state}>"
      end

      # @api private
      # Runs the block, unless another thread has started it, or it has been stopped.
      def run
        claimed = false
        begin
          @guard.synchronize { claimed = claim }
          return unless claimed

          value = @context.run_here { @work.call(*@arguments) }
          finished = true
        rescue Exception => e # rubocop:disable Lint/RescueException -- raised again in the fiber that awaits the job
          raise unless claimed

          error = e
        ensure
          # Runs also if the block was left by `throw`, or the thread is being killed.
          (finished || error ? finish(value, error) : lose) if claimed
        end
      end

      # @api private
      # The job's thread is being killed, or its block was left by `throw`.
      def lose
        return if ended?

        finish(nil, ThreadError.new("#{inspect}: its block was left by throw, or its thread was killed"))
      end

      private

      # Call it within the guard.
      #
      # @return [Boolean] whether the job was pending, and is running now
      def claim
        @state == :pending && (@state = :running) && true
      end

      def finish(value, error)
        @guard.synchronize do
          @value = value
          @error = error
          @state = :ended
          @end.wake
        end
      end
    end
  end
end
