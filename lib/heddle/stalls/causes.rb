# frozen_string_literal: true

module Heddle
  module Stalls
    # Counts stalls by their places, and limits how often each is reported.
    #
    # @api private
    class Causes
      # Seconds between two reports of the same cause.
      INTERVAL = 10
      # How many causes are known. The one that was first seen is forgotten first.
      LIMIT = 1000
      private_constant :INTERVAL, :LIMIT

      def initialize
        @causes = {}
        @mutex = Mutex.new
      end

      # @param place [String]
      # @return [Array(Integer, Boolean)] how many stalls there have been, and whether this one is to be reported
      def count(place)
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        @mutex.synchronize do
          count, reported_at = @causes[place]
          due = reported_at.nil? || now - reported_at >= INTERVAL
          @causes.shift if count.nil? && @causes.size >= LIMIT
          @causes[place] = [count.to_i + 1, due ? now : reported_at]
          [count.to_i + 1, due]
        end
      end
    end
    private_constant :Causes
  end
end
