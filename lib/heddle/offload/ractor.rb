# frozen_string_literal: true

require_relative "../offload"

return unless Heddle.supported?

module Heddle
  module Offload # :nodoc:
    # Waiting for a Ractor blocks the thread: by `take`, and in Ruby 4.0 by `value` and `join`.
    module RactorWaits
      if ::Ractor.method_defined?(:take)
        # Waits for a value of the Ractor; see Ruby's documentation.
        def take = Offload.call { super }
      else
        # Waits for the Ractor's value; see Ruby's documentation.
        def value = Offload.call { super }

        # Waits for the Ractor's end; see Ruby's documentation.
        def join = Offload.call { super }
      end
    end
    private_constant :RactorWaits

    AdapterPart.new(
      "Ruby", RUBY_VERSION,
      right_with: "4.0.1", without: "a fiber that waits for a Ractor blocks all fibers of its thread",
      overrides: { "Ractor" => RactorWaits }
    ).install
  end
end
