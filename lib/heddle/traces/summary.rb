# frozen_string_literal: true

module Heddle
  # What a trace has recorded.
  #
  # @!attribute [r] path
  #   @return [String, nil] the file; nil if the trace was written to an IO
  # @!attribute [r] events
  #   @return [Integer] how many recorded events the trace has. The file shows one event as several, or as none.
  # @!attribute [r] dropped
  #   @return [Integer] how many events were dropped, the oldest, because there were more than `events:`
  # @!attribute [r] seconds
  #   @return [Float] for how long events were recorded. If events were dropped, the trace has the last part of that.
  TraceSummary = Data.define(:path, :events, :dropped, :seconds)
end
