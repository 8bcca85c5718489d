# frozen_string_literal: true

module Heddle
  class Channel
    # One wait for several channels.
    class Selection
      def initialize(channels, timeout)
        @channels = channels.uniq
        @due = timeout && (Structure.now + timeout)
      end

      def call
        loop do
          waiter = Waiter.new
          found = try(waiter)
          return found unless found == :nothing_yet
          return unless waiter.wait(@due && [@due - Structure.now, 0].max)
        ensure
          @entered.each { |channel| channel.leave(waiter) }
        end
      end

      private

      # @return [Array, nil, :nothing_yet]
      def try(waiter)
        @entered = []
        @channels.each do |channel|
          taken = channel.take_or_wait(waiter)
          @entered << channel unless taken
          return [channel, taken.first] if taken&.any?
        end
        @entered.empty? ? nil : :nothing_yet
      end
    end
    private_constant :Selection
  end
end
