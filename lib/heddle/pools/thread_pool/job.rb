# frozen_string_literal: true

module Heddle
  class ThreadPool
    # A block that a {ThreadPool} runs.
    class Job
      def initialize(context, arguments, work)
        @context = context
        @arguments = arguments
        @work = work
        @guard = Guard.new
        @end = Waiter.new
        @state = :pending
      end

      # Waits for the block's end.
      #
      # @return [Object] the block's value; nil if it was withdrawn
      # @raise the block's error
      # @raise [ThreadError] if the block was left by `throw`, or its thread was killed
      def await
        @end.wait unless ended?
        raise @error if @error

        @value
      end

      # @return [Boolean]
      def ended?
        @state == :ended
      end

      # A job that has not started never starts. Ruby code in another thread cannot be ended safely: a job that has
      # started continues.
      def terminate
        Guard.uninterrupted { finish(nil, nil) if @guard.synchronize { claim } }
      end

      # @return [String]
      def inspect
        "#<#{self.class} #{@work.source_location&.join(":")} #{@state}>"
      end

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
    private_constant :Job
  end
end
