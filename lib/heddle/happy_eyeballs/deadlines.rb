# frozen_string_literal: true

module Heddle
  class HappyEyeballs
    # Until when to wait for what.
    class Deadlines
      # How long IPv4 addresses wait for the look-up of the IPv6 ones, in seconds.
      RESOLUTION_DELAY = 0.05
      # How long one connection is tried before the next one is begun, too.
      ATTEMPT_DELAY = 0.25
      NEVER = Float::INFINITY
      private_constant :RESOLUTION_DELAY, :ATTEMPT_DELAY, :NEVER

      # @return [Numeric, nil] seconds for a look-up that is waited for
      attr_reader :look_up_timeout

      def initialize(timeouts)
        resolv_timeout, @connect_timeout, open_timeout =
          timeouts.values_at(:resolv_timeout, :connect_timeout, :open_timeout)
        @look_up_timeout = open_timeout || resolv_timeout
        advance
        @open_until = @now + open_timeout if open_timeout
        @resolv_until = after(resolv_timeout)
      end

      # A wait has ended.
      def advance
        @now = clock
        @resolution_delay_until = nil if past?(@resolution_delay_until)
        @attempt_delay_until = nil if past?(@attempt_delay_until)
      end

      # Whether the next attempt has to wait.
      def delayed? = @resolution_delay_until || @attempt_delay_until

      # The IPv4 addresses are there, and the IPv6 ones are not.
      def delay_v4 = @resolution_delay_until = @now + RESOLUTION_DELAY

      # All look-ups have ended.
      def end_look_ups = @resolution_delay_until = @resolv_until = nil

      # One attempt of several has begun; `more` says whether there are other addresses to try.
      def begin_attempt(more:)
        @attempt_delay_until = @now + ATTEMPT_DELAY
        @connect_until = after(@connect_timeout) unless more
      end

      # All attempts that have begun have failed.
      def end_attempts = @attempt_delay_until = @connect_until = nil

      # An attempt begins that has no alternative: it has a time of its own.
      def begin_last_attempt
        @now = clock
        @last_until = @open_until || after(@connect_timeout)
      end

      # Whether such an attempt has begun.
      def last_attempt? = !@last_until.nil?

      # Whether its time is up.
      def last_attempt_over? = past?(@last_until)

      # Whether the time for all of it is up.
      def over? = past?(@open_until)

      # Whether the times for the look-ups that are `pending` and for the attempts that are `trying` are up.
      def in_vain?(pending:, trying:)
        !@last_until && (!pending || past?(@resolv_until)) && (!trying || past?(@connect_until))
      end

      # @return [Float, nil] seconds to wait now, if there are other addresses to try (`more`) or not
      def timeout(more:)
        time =
          if @last_until then @last_until
          elsif more then [@resolution_delay_until || @attempt_delay_until, @open_until].compact.min
          else @open_until || [@resolv_until, @connect_until].compact.max
          end
        (time - clock).clamp(0..) if time && time != NEVER
      end

      private

      def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def after(seconds) = seconds ? @now + seconds : NEVER

      def past?(time) = !time.nil? && @now >= time
    end
    private_constant :Deadlines
  end
end
