# frozen_string_literal: true

module Heddle
  # What was registered: a receiver of {Heddle.on_stall}, or the numbers of a scheduler in a monitoring system.
  #
  # @example
  #   subscription = Heddle.on_stall { |stall| stalls << stall }
  #   subscription.unsubscribe
  class Subscription
    # @api private
    # @yield removes what was registered
    def initialize(&remove)
      @remove = remove
    end

    # Removes what was registered. Any thread may call this, and more than once.
    #
    # @return [nil]
    def unsubscribe
      remove = @remove
      @remove = nil
      remove&.call
      nil
    end

    # @return [Boolean] whether it is still registered
    def subscribed? = !@remove.nil?

    # @return [String]
    def inspect = "#<#{self.class} #{subscribed? ? "subscribed" : "unsubscribed"}>"
  end
end
