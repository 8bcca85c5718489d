# frozen_string_literal: true

module Heddle
  # Where Heddle has no extension there is no pool, and calls run in place.
  module Offload
    class << self
      # Runs the block in place.
      #
      # @yield the call that blocks
      # @return [Object] the block's value
      def call = yield

      %i[pool pool=].each do |name|
        define_method(name) { |*| raise Extension.error("Heddle::Offload.#{name}") }
      end
    end
  end
end
