# frozen_string_literal: true

module Heddle
  module Async
    # What `Async::Timeout` asks of Async's timers, for a {Deadline}. It moves a limit by ending its timer and making
    # another one.
    module Timers
      # Seconds. Async knows no limit that is over by then.
      FAR = 1_000_000_000
      private_constant :FAR

      # The timer of a block's limit.
      class Timer
        # @param deadline [Deadline]
        def initialize(deadline)
          @deadline = deadline
          @cancelled = false
        end

        # @return [Float] when the limit is over
        def time = Timers.now + @deadline.remaining

        # @return [Deadline, nil] what {Timers.schedule} takes; nil if the timer was ended
        def block = (@deadline unless @cancelled)

        # Ends the timer: the block has no limit.
        def cancel!
          @cancelled = true
          @deadline.reset(FAR)
        end

        # @return [Boolean] whether it was ended
        def cancelled? = @cancelled
      end

      class << self
        # @return [Float] seconds
        def now = Context.now

        # @param time [Numeric] when the limit is to be over
        # @param deadline [Deadline]
        # @return [Timer]
        def schedule(time, deadline)
          deadline.reset([time - now, 0].max)
          Timer.new(deadline)
        end
      end
    end
    private_constant :Timers
  end
end
