# frozen_string_literal: true

module Heddle
  class HappyEyeballs
    # The deadlines of the look-ups and the connection attempts. All times are in seconds.
    class Deadlines
      # How long IPv4 addresses wait for the answer of the IPv6 look-up (RFC 8305, Resolution Delay).
      RESOLUTION_DELAY = 0.05
      # How long an attempt runs before the next one starts beside it (RFC 8305, Connection Attempt Delay).
      ATTEMPT_DELAY = 0.25
      NEVER = Float::INFINITY
      private_constant :RESOLUTION_DELAY, :ATTEMPT_DELAY, :NEVER

      # @return [Numeric, nil] the timeout of a look-up that runs on its own
      attr_reader :lookup_timeout

      # @param timeouts [Hash] see {HappyEyeballs#initialize}
      def initialize(timeouts)
        resolv_timeout, @connect_timeout, open_timeout =
          timeouts.values_at(:resolv_timeout, :connect_timeout, :open_timeout)
        @lookup_timeout = open_timeout || resolv_timeout
        advance
        @open_until = @now + open_timeout if open_timeout
        @resolv_until = after(resolv_timeout)
      end

      # Reads the clock, after a wait.
      def advance
        @now = Context.now
        @resolution_delay_until = nil if past?(@resolution_delay_until)
        @attempt_delay_until = nil if past?(@attempt_delay_until)
      end

      # @return [Float, nil] the time before which no attempt may start
      def delayed? = @resolution_delay_until || @attempt_delay_until

      # The IPv4 look-up has ended before the IPv6 one.
      def delay_v4 = @resolution_delay_until = @now + RESOLUTION_DELAY

      # All look-ups have ended.
      def end_lookups = @resolution_delay_until = @resolv_until = nil

      # An attempt has started that has alternatives.
      #
      # @param more [Boolean] whether there are addresses left to try
      def begin_attempt(more:)
        @attempt_delay_until = @now + ATTEMPT_DELAY
        @connect_until = after(@connect_timeout) unless more
      end

      # All attempts that have started have failed.
      def end_attempts = @attempt_delay_until = @connect_until = nil

      # An attempt starts that has no alternative. It gets a timeout of its own.
      def begin_last_attempt
        @now = Context.now
        @last_until = @open_until || after(@connect_timeout)
      end

      # @return [Boolean] whether the last attempt has started
      def last_attempt? = !@last_until.nil?

      # @return [Boolean] whether the last attempt has timed out
      def last_attempt_over? = past?(@last_until)

      # @return [Boolean] whether the timeout for everything (`open_timeout`) has passed
      def over? = past?(@open_until)

      # @param pending [Boolean] whether look-ups are running
      # @param trying [Boolean] whether attempts are running
      # @return [Boolean] whether everything that is running has timed out
      def in_vain?(pending:, trying:)
        !@last_until && (!pending || past?(@resolv_until)) && (!trying || past?(@connect_until))
      end

      # @param more [Boolean] whether there are addresses left to try
      # @return [Float, nil] how long to wait now; nil is for ever
      def timeout(more:)
        time =
          if @last_until then @last_until
          elsif more then [@resolution_delay_until || @attempt_delay_until, @open_until].compact.min
          else @open_until || [@resolv_until, @connect_until].compact.max
          end
        (time - Context.now).clamp(0..) if time && time != NEVER
      end

      private

      def after(seconds) = seconds ? @now + seconds : NEVER

      def past?(time) = !time.nil? && @now >= time
    end
    private_constant :Deadlines
  end
end
