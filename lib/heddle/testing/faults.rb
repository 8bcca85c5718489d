# frozen_string_literal: true

module Heddle
  module Testing
    # Compares the errors by which runs fail, and tells them.
    module Faults
      # What may differ in the messages of one defect: addresses, identifiers, times, amounts.
      NUMBER = /0x\h+|\d+/
      NAME = Module.instance_method(:name)
      private_constant :NUMBER, :NAME

      class << self
        # A program may make a class anew for each run. So classes are compared by name.
        #
        # @param error [Exception]
        # @param other [Exception, nil]
        # @param messages [Boolean] whether the messages must be the same, too, numbers aside. Those of a deadlock and
        #   of an endless program say where it was, and are not compared.
        # @return [Boolean] whether both tell the same defect
        def same?(error, other, messages: true)
          return false if other.nil? || class_name(error) != class_name(other)
          return true if !messages || error.is_a?(Deadlock) || error.is_a?(NeverEnds)

          words(error) == words(other)
        end

        # @param error [Exception]
        # @return [String] its message, also if the error's own method fails
        def message(error)
          error.message.to_s
        rescue StandardError => e
          "(an error whose message raises #{class_name(e)})"
        end

        # @param error [Exception]
        # @return [String] the name of its class
        def class_name(error)
          named = error.class.ancestors.find { |type| type.is_a?(Class) && NAME.bind_call(type) }
          name = NAME.bind_call(named)
          error.instance_of?(named) ? name : "a #{name} of a class without a name"
        end

        private

        def words(error) = Text.clean(message(error)).gsub(NUMBER, "0")
      end
    end
    private_constant :Faults
  end
end
