# frozen_string_literal: true

module Heddle
  # Where Heddle has no extension, Async keeps its own schedulers.
  module Async
    class << self
      # @return [nil]
      def default = nil

      # @return [void]
      def default!(**) = nil
    end
  end
end
