# frozen_string_literal: true

module Heddle
  # What a test class includes where Heddle cannot run: its tests run as they are.
  module MinitestFibers
    # Methods of the class.
    module ClassMethods
      # Explores nothing.
      #
      # @return [void]
      def explore(**) = nil
    end

    # @api private
    def self.included(type)
      super
      type.extend(ClassMethods)
    end
  end
end
