# frozen_string_literal: true

module Heddle
  module Async
    # How busy a thread is, for `Async::Idler`: the share of the last second in which it used its CPU.
    class Load
      # Seconds.
      WINDOW = 1.0
      # Seconds before the first reading, in which the thread counts as idle: a window of microseconds says nothing.
      BEFORE = 0.1
      private_constant :WINDOW, :BEFORE

      def initialize
        @last = read
        @begin = [@last.first - BEFORE, @last.last]
      end

      # @return [Float] from 0.0 to 1.0
      def value
        now = read
        elapsed, busy = now.zip(@begin).map { |time, earlier| time - earlier }
        # A window ends after a second, and the next one begins with the readings of the last call.
        @begin = @last if elapsed > WINDOW
        @last = now
        elapsed.zero? ? 0.0 : (busy / elapsed).clamp(0.0, 1.0)
      end

      private

      def read
        [Process::CLOCK_MONOTONIC, Process::CLOCK_THREAD_CPUTIME_ID].map { |clock| Process.clock_gettime(clock) }
      end
    end
    private_constant :Load
  end
end
