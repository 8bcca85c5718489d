# frozen_string_literal: true

module Heddle
  class Channel
    # One call of {Channel.select}.
    class Selection
      # @param channels [Array<Channel>]
      # @param timeout [Numeric, nil] seconds
      def initialize(channels, timeout)
        @channels = channels.uniq
        @asked = []
        @due = Waiter.due(timeout)
      end

      # @return [Array(Channel, Object), nil] see {Channel.select}
      def call
        while true # rubocop:disable Style/InfiniteLoop -- `loop` would rescue a StopIteration that is raised in this fiber
          begin
            waiter = Waiter.new
            found = try(waiter)
            return found unless found == :nothing_yet
            return unless waiter.wait_until(@due)
          ensure
            @asked.each { |channel| channel.leave(waiter) }
          end
        end
      end

      private

      # Takes an item from the first channel that has one, or enqueues the waiter at all of them.
      #
      # @return [Array, nil, :nothing_yet] nil if all channels are closed and empty
      def try(waiter)
        @asked = []
        open = @channels.reject do |channel|
          @asked << channel
          taken = channel.take_or_wait(waiter)
          # Empty, if the channel is closed and has no item. The item may be nil or false.
          return [channel, taken.first] if taken && !taken.empty?

          taken
        end
        open.empty? ? nil : :nothing_yet
      end
    end
    private_constant :Selection
  end
end
