# frozen_string_literal: true

module Heddle
  module Stalls
    # Counts stalls by their places, and limits how often each place is reported. Watching threads share it.
    #
    # @api private
    class Causes
      # Seconds between two reports of the same place.
      INTERVAL = 10
      # How many places are known. The one that was first seen is forgotten first.
      LIMIT = 1000
      # How many stalls there have been at a place, and from when on another one is reported.
      Seen = Struct.new(:times, :reported_from)
      private_constant :INTERVAL, :LIMIT, :Seen

      def initialize
        @mutex = Mutex.new
        @places = {}
      end

      # @param place [String, nil]
      # @param now [Float] seconds
      # @return [Array(Integer, Boolean)] how many stalls there have been at this place, with this one, and whether this
      #   one is to be reported
      def count(place, now = Context.now)
        @mutex.synchronize do
          seen = @places[place] ||= Seen.new(0, now)
          @places.shift if @places.size > LIMIT
          seen.times += 1
          is_reported = now >= seen.reported_from
          seen.reported_from = now + INTERVAL if is_reported
          [seen.times, is_reported]
        end
      end
    end
    private_constant :Causes
  end
end
