# frozen_string_literal: true

require "active_support/notifications"
require_relative "../../heddle"

# `require "heddle/stalls/notifications"` publishes each report of {Heddle.on_stall} as the event `stall.heddle`, with
# the {Heddle::Stall}'s attributes as its payload.
Heddle.on_stall { |stall| ActiveSupport::Notifications.instrument("stall.heddle", stall.to_h) }
