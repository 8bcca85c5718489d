# frozen_string_literal: true

module Heddle
  module Jobs
    # The methods of {SidekiqCapsule} where its processors stay threads.
    module SidekiqThreads
      # Changes nothing.
      #
      # @return [self]
      def fibers!(**) = self

      # @return [Boolean] false
      def fibers? = false
    end
  end
end
